# SPDX-License-Identifier: Apache-2.0
"""The other side of the round trips: files of the reference implementations. Exits 77 where they are not installed.

    peer.py write FOLDER    writes reference.safetensors, *.npy and reference.npz
    peer.py read FOLDER     reads ours.safetensors, ours_*.npy and ours.npz, and compares them with what it would have written
"""
import json
import struct
import sys

try:
    import numpy as np
    import safetensors
    from safetensors.numpy import load_file, save_file
except ImportError as missing:
    print(missing)
    sys.exit(77)

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def array(dtype, shape):
    """Elements that have every bit set somewhere: the bytes 1, 8, 15, ... as elements; a bool has only 0 and 1."""
    count = int(np.prod(shape))
    if dtype == "bool":
        return (np.arange(count) % 3 == 0).reshape(shape)
    raw = (np.arange(count * np.dtype(dtype).itemsize) * 7 + 1).astype("uint8")
    return raw.view(dtype).reshape(shape)


def tensors():
    made = {f"{d}.weight": array(d, (3, 5)) for d in DTYPES}
    made["scalar/é"] = array("int32", ())
    made["none"] = array("float32", (0, 7))
    return made


def same(ours, theirs, name):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, name
    assert ours.tobytes() == theirs.tobytes(), name


def write(folder):
    save_file(tensors(), f"{folder}/reference.safetensors", metadata={"format": "np", "who": "the reference"})
    np.savez(f"{folder}/reference.npz", **{d: array(d, (3, 5)) for d in DTYPES + ["complex64", "complex128"]})
    for dtype in DTYPES + ["complex64", "complex128"]:
        np.save(f"{folder}/c_{dtype}.npy", array(dtype, (2, 3, 4)))
        np.save(f"{folder}/f_{dtype}.npy", np.asfortranarray(array(dtype, (2, 3, 4))))


def read(folder):
    path = f"{folder}/ours.safetensors"
    loaded = load_file(path)
    expected = tensors()
    assert loaded.keys() == expected.keys(), loaded.keys()
    for name, one in expected.items():
        same(loaded[name], one, name)
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    assert header["__metadata__"] == {"format": "np", "who": "berth"}, header["__metadata__"]
    archive = np.load(f"{folder}/ours.npz")
    for dtype in DTYPES + ["complex64", "complex128"]:
        same(archive[dtype], array(dtype, (3, 5)), dtype)
        same(np.load(f"{folder}/ours_c_{dtype}.npy"), array(dtype, (2, 3, 4)), dtype)
        fortran = np.load(f"{folder}/ours_f_{dtype}.npy")
        assert fortran.flags.f_contiguous, dtype
        same(fortran, array(dtype, (2, 3, 4)), dtype)


{"write": write, "read": read}[sys.argv[1]](sys.argv[2])
print(f"safetensors {safetensors.__version__}, numpy {np.__version__}")
