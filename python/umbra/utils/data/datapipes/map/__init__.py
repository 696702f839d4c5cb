"""Collections by index as steps of a pipeline."""
from umbra.utils.data.datapipes.map.callable import MapperMapDataPipe as Mapper
from umbra.utils.data.datapipes.map.combinatorics import ShufflerIterDataPipe as Shuffler
from umbra.utils.data.datapipes.map.combining import ConcaterMapDataPipe as Concater, ZipperMapDataPipe as Zipper
from umbra.utils.data.datapipes.map.grouping import BatcherMapDataPipe as Batcher
from umbra.utils.data.datapipes.map.utils import SequenceWrapperMapDataPipe as SequenceWrapper

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]
