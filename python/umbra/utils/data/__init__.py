"""Datasets, samplers, pipes, and the loader that makes batches of them."""
from umbra.utils.data.dataloader import DataLoader, _DatasetKind, default_collate, default_convert, get_worker_info
from umbra.utils.data.datapipes._decorator import (
    argument_validation, functional_datapipe, guaranteed_datapipes_determinism, non_deterministic, runtime_validation, runtime_validation_disabled)
from umbra.utils.data.datapipes.datapipe import DataChunk, DFIterDataPipe, IterDataPipe, MapDataPipe
from umbra.utils.data.dataset import (
    ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split)
from umbra.utils.data.distributed import DistributedSampler
from umbra.utils.data.sampler import (
    BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler)

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DFIterDataPipe", "DataChunk", "DataLoader", "Dataset", "DistributedSampler",
           "IterDataPipe", "IterableDataset", "MapDataPipe", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
           "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "_DatasetKind", "argument_validation", "default_collate",
           "default_convert", "functional_datapipe", "get_worker_info", "guaranteed_datapipes_determinism", "non_deterministic", "random_split",
           "runtime_validation", "runtime_validation_disabled"]
