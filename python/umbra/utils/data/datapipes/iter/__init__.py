"""Streams as steps of a pipeline."""
from umbra.utils.data.datapipes.iter.callable import CollatorIterDataPipe as Collator, MapperIterDataPipe as Mapper
from umbra.utils.data.datapipes.iter.combinatorics import SamplerIterDataPipe as Sampler, ShufflerIterDataPipe as Shuffler
from umbra.utils.data.datapipes.iter.combining import (
    ConcaterIterDataPipe as Concater, MultiplexerIterDataPipe as Multiplexer, ZipperIterDataPipe as Zipper,
    DemultiplexerIterDataPipe as Demultiplexer, ForkerIterDataPipe as Forker)
from umbra.utils.data.datapipes.iter.filelister import FileListerIterDataPipe as FileLister
from umbra.utils.data.datapipes.iter.fileopener import FileOpenerIterDataPipe as FileOpener
from umbra.utils.data.datapipes.iter.grouping import (
    BatcherIterDataPipe as Batcher, GrouperIterDataPipe as Grouper, UnBatcherIterDataPipe as UnBatcher)
from umbra.utils.data.datapipes.iter.routeddecoder import RoutedDecoderIterDataPipe as RoutedDecoder
from umbra.utils.data.datapipes.iter.selecting import FilterIterDataPipe as Filter
from umbra.utils.data.datapipes.iter.sharding import ShardingFilterIterDataPipe as ShardingFilter
from umbra.utils.data.datapipes.iter.streamreader import StreamReaderIterDataPipe as StreamReader
from umbra.utils.data.datapipes.iter.utils import IterableWrapperIterDataPipe as IterableWrapper

__all__ = ["Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter", "Forker", "Grouper", "IterableWrapper", "Mapper",
           "Multiplexer", "RoutedDecoder", "Sampler", "ShardingFilter", "Shuffler", "StreamReader", "UnBatcher", "Zipper"]
