"""The usual ones: averages, and averages of fewer bits."""
import umbra
from umbra.distributed import _group


def _future(value):
    future = umbra.futures.Future()
    future.set_result(value)
    return future


def _size(process_group):
    return _group.get_world_size(process_group)


def allreduce_hook(process_group, bucket):
    """The average of all processes' gradients."""
    return _future(bucket.buffer().div_(_size(process_group)))


def _compressed(dtype, process_group, bucket):
    buffer = bucket.buffer()
    buffer.copy_(buffer.to(dtype).div_(_size(process_group)))
    return _future(buffer)


def fp16_compress_hook(process_group, bucket):
    return _compressed(umbra.float16, process_group, bucket)


def bf16_compress_hook(process_group, bucket):
    return _compressed(umbra.bfloat16, process_group, bucket)


def _wrapper(dtype):
    def wrapper(hook):
        def wrapped(state, bucket):
            bucket.set_buffer(bucket.buffer().to(dtype))

            def decompress(future):
                value = future.value()
                value = value[0] if isinstance(value, (list, tuple)) else value
                return value.to(bucket.original_dtype)
            return hook(state, bucket).then(decompress)
        return wrapped
    return wrapper


fp16_compress_wrapper, bf16_compress_wrapper = _wrapper(umbra.float16), _wrapper(umbra.bfloat16)
