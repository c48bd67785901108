# SPDX-License-Identifier: Apache-2.0
"""Mutated real files, read by berth and by the reference packages: where they disagree, docs/files.md says why.

    differential.py HELPER COUNT [SEED [FOLDER]]     HELPER is tests/file/reader_helper.cc; exits 77 where the packages are
                                                     not installed. With a folder all classes are listed, and a file of each is there

Each difference is of a class: which format, who accepts, and by what rule the other refuses. The classes that are explained
are in EXPLAINED; exits 1 for any other, with a file of it as a command of the shell, and for a file that both accept and read
differently.
"""
import collections
import io
import json
import random
import re
import resource
import struct
import subprocess
import sys
import warnings
import zlib

try:
    import numpy as np
    import onnx
    import safetensors
    import safetensors.numpy
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(missing)
    sys.exit(77)

warnings.simplefilter("ignore")

# (format, who accepts, what the refusal of the other matches). docs/files.md, "Where berth and the packages differ", says why.
EXPLAINED = [(form, who, re.compile(pattern)) for form, who, pattern in (
    ("safetensors", "package", r"^(member_unknown|duplicate_key|header_padding|header_start):"),
    ("npy", "package", r"^(trailing_bytes|duplicate_key|header_padding|dictionary|dtype|structured|rank|shape|member_type|utf8):"),
    ("npz", "package", r"^(trailing_bytes|duplicate_key|header_padding|dictionary|dtype|structured|rank|shape|member_type|utf8):"),
    ("npz", "package", r"^(bounds|local_header|no_directory|several_parts|size_mismatch|directory|row_count|overlap|not_npy|compressed):"),
    ("npz", "berth", r"^NotImplementedError: zip file version"),
    ("onnx", "berth", r"^ValidationError:"),
    ("onnx", "berth", r"^UnicodeDecodeError:"),
    ("onnx", "berth", r"^DecodeError:"),
    ("onnx", "package", r"^(size_mismatch:|format_error: .*wrong wire type)"),
)]


# ---- Real files, made by the packages.


def safetensors_files():
    several = {"w": np.ones((2, 2), "f4"), "b": np.zeros(3, "i1"), "s": np.array(3, "i8")}
    yield safetensors.numpy.save(several, metadata={"format": "np"})
    yield safetensors.numpy.save({"a": np.ones((0, 3), "f2")})
    yield safetensors.numpy.save({f"layer.{i}": np.full((i, 2), i, "u2") for i in range(4)})


def npy_files():
    for dtype in ("bool", "uint8", "int16", "float32", "float64", "complex64"):
        yield npy(np.ones((2, 3), dtype))
    yield npy(np.asfortranarray(np.arange(24, dtype="<f4").reshape(2, 3, 4)))
    yield npy(np.float32(3))
    yield npy(np.ones(3, "<u2"), (2, 0))


def npy(array, version=(1, 0)):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), version=version)
    return out.getvalue()


def npz_files():
    for arrays in ({"w": np.ones((2, 2), "f4"), "b": np.zeros(3, "i8")}, {"one": np.arange(5, dtype="u1")}):
        out = io.BytesIO()
        np.savez(out, **arrays)
        yield out.getvalue()


def onnx_files():
    value = helper.make_tensor_value_info
    weights = [numpy_helper.from_array(np.zeros((2, 1, 3, 3), "f4"), "w")]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])]
    yield model(nodes, [value("x", TensorProto.FLOAT, ["N", 1, 4, 4])], [value("y", TensorProto.FLOAT, ["N", 2, 4, 4])], weights)
    sizes = [numpy_helper.from_array(np.array([0], "i8"), "i"), numpy_helper.from_array(np.array([-1], "i8"), "m")]
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "i"], ["d"], axis=0),
             helper.make_node("Concat", ["d", "m"], ["t"], axis=0), helper.make_node("Reshape", ["x", "t"], ["y"]),
             helper.make_node("Transpose", ["y"], ["z"], perm=[1, 0])]
    yield model(nodes, [value("x", TensorProto.FLOAT, [2, 3, 4])], [value("z", TensorProto.FLOAT, [12, 2])], sizes)


def model(nodes, inputs, outputs, weights):
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


# ---- Damage.

WORDS = [b"0", b"1", b"-1", b"4", b"9223372036854775808", b"1.0", b"1e3", b"null", b"true", b"True", b"{}", b"[]", b'""', b"(", b")",
         b"(1,)", b"'", b'"', b",", b":", b" ", b"\0", b"\xff", b"F64", b"I8", b"<i8", b">f4", b"|O", b"|V2", b"U4",
         b"\\u0061", b"shape", b"dtype", b"__metadata__"]


def changed(rng, data):
    at = rng.randrange(len(data) + 1)
    kind = rng.randrange(6)
    if kind == 0:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1:]
    if kind == 1:
        return data[:at] + data[at + 1 + rng.randrange(3):]
    if kind == 2:
        return data[:at] + bytes([(data[at] + rng.choice((-1, 1))) % 256]) + data[at + 1:] if at < len(data) else data + b"\0"
    if kind == 3:
        return data[:at] + data[max(0, at - 1 - rng.randrange(20)):at] + data[at:]
    word = rng.choice(WORDS)
    return data[:at] + word + data[at + (len(word) if kind == 4 else 0):]


def changed_safetensors(rng, data):
    """The length in front stays right, but for one in four."""
    data = changed(rng, data)
    if rng.randrange(4) == 0:
        return data
    end = data.rfind(b"}")
    return struct.pack("<Q", end + 1 - 8) + data[8:] if end >= 8 else data


def changed_npy(rng, data):
    """As for safetensors."""
    data = changed(rng, data)
    if rng.randrange(4) == 0:
        return data
    end = data.find(b"\n", 10)
    return data[:8] + struct.pack("<H", end + 1 - 10) + data[10:] if len(data) > 10 and data[6] == 1 and 10 <= end < 65000 else data


def changed_npz(rng, data):
    """The checksums of the members stay right, but for one in four."""
    data = bytearray(changed(rng, data))
    if rng.randrange(4) == 0:
        return bytes(data)
    locals_at = [found.start() for found in re.finditer(rb"PK\x03\x04", data)]
    rows_at = [found.start() for found in re.finditer(rb"PK\x01\x02", data)]
    for number, (local, row) in enumerate(zip(locals_at, rows_at)):
        end = (locals_at + [rows_at[0]])[number + 1] if number + 1 < len(locals_at) else rows_at[0]
        if local + 30 > len(data) or row + 46 > len(data):
            break
        begin = local + 30 + sum(struct.unpack_from("<HH", data, local + 26))
        for at in (local + 14, row + 16):
            struct.pack_into("<I", data, at, zlib.crc32(bytes(data[begin:end])))
    return bytes(data)


def changed_message(rng, data):
    """A change of one field, at any depth, so that the lengths around it stay right."""
    whole = onnx.load_model_from_string(data)
    message = whole
    while True:
        fields = message.ListFields()
        if not fields:
            return changed(rng, data)
        field, value = rng.choice(fields)
        several = not hasattr(value, "ListFields") and field.message_type is not None
        if field.message_type is None or rng.randrange(8) == 0:
            break
        message = rng.choice(list(value)) if several else value
    if rng.randrange(6) == 0:
        message.ClearField(field.name)
    elif field.message_type is not None and several:
        value.add().CopyFrom(rng.choice(list(value)))
    elif field.message_type is not None:
        value.Clear()
    elif hasattr(value, "append"):
        value.append(other(rng, value[0]))
        if rng.randrange(2):
            del value[rng.randrange(len(value))]
    else:
        setattr(message, field.name, other(rng, value))
    return whole.SerializeToString()


def changed_onnx(rng, data):
    try:
        return changed_message(rng, data) if rng.randrange(4) else changed(rng, data)
    except Exception:  # the change before this one left no message, or text that is none
        return changed(rng, data)


def other(rng, value):
    if isinstance(value, bool) or isinstance(value, float):
        return value
    if isinstance(value, int):
        return rng.choice((0, 1, 2, 3, 7, 8, 16, 17, 18, 25, 2**31 - 1, value + 1))
    if isinstance(value, str):
        return rng.choice(("", "x", "y", "w", "c", "Relu", "Reshape", "Add", "N", "axis", "ai.onnx", value + value))
    return changed(rng, value)


# ---- The packages' verdicts: a list of names, shapes and checksums, or the class of the refusal.


def described(name, array):
    return {"name": name, "shape": list(array.shape), "sum": zlib.crc32(array.tobytes())}


def read_npy(data):
    return [described("", np.load(io.BytesIO(data), allow_pickle=False))]


def read_npz(data):
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return [described(name, archive[name]) for name in archive.files]


def read_safetensors(data):
    found = []
    for name, one in safetensors.deserialize(data):
        found.append({"name": name, "shape": list(one["shape"]), "sum": zlib.crc32(bytes(one["data"]))})
    return found


def read_onnx(data):
    loaded = onnx.load_model_from_string(data)
    onnx.checker.check_model(loaded)
    return []


READERS = {"s": read_safetensors, "n": read_npy, "z": read_npz, "o": read_onnx}
FORMATS = {"s": ("safetensors", safetensors_files, changed_safetensors), "n": ("npy", npy_files, changed_npy),
           "z": ("npz", npz_files, changed_npz), "o": ("onnx", onnx_files, changed_onnx)}


def reference(form, data):
    try:
        return True, READERS[form](data)
    except (MemoryError, Exception) as error:  # each package has exceptions of its own, and of others
        return False, "%s: %s" % (type(error).__name__, re.sub(r"\d+", "N", str(error)).split("\n")[0][:120])


class Berth:
    def __init__(self, helper_path):
        self.helper = subprocess.Popen([helper_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, form, data):
        self.helper.stdin.write(struct.pack("<I", len(data)) + form.encode() + data)
        self.helper.stdin.flush()
        line = self.helper.stdout.readline()
        if not line:
            sys.exit("differential: berth ended with %s at: %s" % (self.helper.wait(), as_command(data)))
        return json.loads(line)


def as_command(data):
    return "printf '%s'" % "".join("\\x%02x" % byte for byte in data)


def same(ours, theirs):
    key = lambda one: one["name"]
    ours, theirs = sorted(ours, key=key), sorted(theirs, key=key)
    return len(ours) == len(theirs) and all(a[what] == b[what] for a, b in zip(ours, theirs) for what in ("name", "shape", "sum"))


def class_of(form, berth, accepts, theirs):
    """None where they agree."""
    if berth["accepted"] and accepts:
        return None if same(berth["tensors"], theirs) else (form, "both", "they read it differently")
    if berth["accepted"] == accepts:
        return None
    if accepts:
        return (form, "package", "%s: %s" % (berth["rule"] or berth["code"], re.sub(r"\d+", "N", berth["why"])[:100]))
    return (form, "berth", theirs)


def is_explained(found):
    return any((form, who) == found[:2] and pattern.search(found[2]) for form, who, pattern in EXPLAINED)


def kept(folder, number, data):
    if not folder:
        return as_command(data)
    path = "%s/%d" % (folder, number)
    with open(path, "wb") as file:
        file.write(data)
    return path


def main():
    berth, count, seed = Berth(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 20240229
    folder = sys.argv[4] if len(sys.argv) > 4 else None
    # A header may promise any size: the packages are to say that there is not that much, and not to take it.
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    rng = random.Random(seed)
    originals = {form: list(files()) for form, (_, files, _) in FORMATS.items()}
    classes, examples, accepted = collections.Counter(), {}, collections.Counter()
    for _ in range(count):
        form = rng.choice("snzo")
        data = rng.choice(originals[form])
        for _ in range(1 + (rng.randrange(3) == 0)):
            data = FORMATS[form][2](rng, data)
        ours = berth.read(form, data)
        accepts, theirs = reference(form, data)
        accepted[form] += ours["accepted"]
        found = class_of(FORMATS[form][0], ours, accepts, theirs)
        if found:
            classes[found] += 1
            if len(data) < len(examples.get(found, data + b"0")):
                examples[found] = data
    wrong = [found for found in classes if not is_explained(found)]
    each = ", ".join("%s %d" % (FORMATS[form][0], number) for form, number in sorted(accepted.items()))
    print("%d files, %s accepted; %d differ, in %d classes, %d of them not explained" %
          (count, each, sum(classes.values()), len(classes), len(wrong)))
    for number, found in enumerate(sorted(classes if folder else wrong)):
        print("%6d  %s, accepted by %s: %s\n        %s" % (classes[found], *found, kept(folder, number, examples[found])))
    return 1 if wrong else 0


sys.exit(main())
