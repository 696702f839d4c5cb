"""Each process's share of a dataset."""
import math

import umbra
from umbra import distributed as dist
from umbra.utils.data.sampler import Sampler


class DistributedSampler(Sampler):
    """The indices of process `rank` of `num_replicas`; `set_epoch` changes the order of a shuffled one."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
        rank = dist.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch, self.drop_last = dataset, num_replicas, rank, 0, drop_last
        self.shuffle, self.seed = shuffle, seed
        if drop_last and len(dataset) % num_replicas:
            self.num_samples = math.ceil((len(dataset) - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(len(dataset) / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        count = len(self.dataset)
        if self.shuffle:
            generator = umbra.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = umbra.randperm(count, generator=generator).tolist()
        else:
            indices = list(range(count))
        if self.drop_last:
            indices = indices[:self.total_size]
        elif indices:
            missing = self.total_size - count
            indices += (indices * math.ceil(missing / count))[:missing]
        return iter(indices[self.rank:self.total_size:self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """The same in all processes: the order follows from it."""
        self.epoch = epoch
