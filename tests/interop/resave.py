"""Loads every program of a folder of models with Umbra and saves it again, beside links to the model's other files.

usage: resave.py MODELS OUT
"""
import os
import sys

from umbra.export.pt2_archive._package import load_pt2, package_pt2


def main(models, out):
    saved, failed = 0, []
    for name in sorted(os.listdir(models)):
        folder = os.path.join(models, name)
        if not os.path.exists(os.path.join(folder, "spec.json")):
            continue
        target = os.path.join(out, name)
        os.makedirs(target)
        for file in sorted(os.listdir(folder)):
            path = os.path.join(folder, file)
            if not file.endswith(".pt2"):
                if not file.endswith(".pt"):
                    os.symlink(os.path.abspath(path), os.path.join(target, file))
                continue
            try:
                programs = load_pt2(path).exported_programs  # one, or several by name
                package_pt2(os.path.join(target, file), exported_programs=programs)
                saved += 1
            except Exception as error:  # noqa: BLE001 - counted and named
                failed.append(f"{name}/{file}: {type(error).__name__}: {error}")
    print("\n".join(failed + [f"saved again: {saved} of {saved + len(failed)}"]))
    return bool(failed)


sys.exit(main(*sys.argv[1:]))
