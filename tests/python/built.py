"""What was built beside the Python package: UMBRA_BUILD names the build folder where it is not `build`."""
import os
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("UMBRA_BUILD", "build")
PROGRAM = BUILD / "umbra"
