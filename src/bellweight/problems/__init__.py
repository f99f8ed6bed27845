"""Problems to try things on: those of the paper, with open parameters.

Each is a factory that returns a model; rules and fast paths of a problem are in its own file.
"""

from bellweight.problems.queue_network import QueueNetwork, queue_network
from bellweight.problems.scheduling import scheduling
from bellweight.problems.single_queue import single_queue

__all__ = ["QueueNetwork", "queue_network", "scheduling", "single_queue"]
