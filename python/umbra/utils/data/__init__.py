"""Datasets, samplers, and the loader that makes batches of them."""
from umbra.utils.data.dataloader import DataLoader, default_collate  # noqa: F401
from umbra.utils.data.dataset import (  # noqa: F401
    ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split)
from umbra.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler  # noqa: F401
