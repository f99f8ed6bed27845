"""Problems to try things on: those of the paper and of the literature, with open parameters.

Each is a factory that returns a model; rules and fast paths of a problem are in its own file.
"""

from bellweight.problems.inventory import continuous_inventory
from bellweight.problems.queue_network import QueueNetwork, queue_network
from bellweight.problems.scheduling import scheduling
from bellweight.problems.single_queue import single_queue

__all__ = ["QueueNetwork", "continuous_inventory", "queue_network", "scheduling", "single_queue"]
