"""The problems of the paper, with open parameters."""

from bellweight.problems.queue_network import QueueNetwork, queue_network
from bellweight.problems.scheduling import scheduling
from bellweight.problems.single_queue import single_queue

__all__ = ["QueueNetwork", "queue_network", "scheduling", "single_queue"]
