"""A model of 2.2 GB as ONNX, whose constants lie in a file beside it: written by Umbra, run by onnxruntime.

usage: large_onnx.py FOLDER PYTHON     (FOLDER has 3 GB of room; PYTHON has onnxruntime and numpy)
"""
import os
import subprocess
import sys

import umbra

CHECK = """
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
x = numpy.zeros((1, 40000), "float32"); x[0, 3] = 3
y, = session.run(None, {session.get_inputs()[0].name: x})
assert y.shape == (1, 40000) and y[0, 39999] == 43 and y[0, 0] == 1 and y.sum() == 40042, y
"""


class Large(umbra.nn.Module):
    """Two matrices of zeros, with a number at the beginning of the first and at the end of the second."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (umbra.nn.Parameter(umbra.zeros(*shape)) for shape in ((40000, 7000), (7000, 40000)))
        with umbra.no_grad():
            self.first[3, 5], self.second[5, 39999] = 2, 7

    def forward(self, x):
        return (x @ self.first).relu() @ self.second + 1


def main():
    folder, python = sys.argv[1:]
    path = os.path.join(folder, "large.onnx")
    umbra.onnx.export(Large(), (umbra.zeros(1, 40000),), path)
    sizes = os.path.getsize(path), os.path.getsize(path + ".data")
    subprocess.run([python, "-c", CHECK, path], check=True)
    print(f"equal in onnxruntime: a graph of {sizes[0]} bytes, constants of {sizes[1]:,}")


if __name__ == "__main__":
    main()
