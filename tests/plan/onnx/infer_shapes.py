#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the shapes that onnx.shape_inference finds: infer_shapes.py MODEL [SYMBOL=SIZE ...]. Exits with 77 where onnx is not installed."""
import sys

try:
    import onnx
    from onnx import shape_inference
except ImportError:
    sys.exit(77)

model = onnx.load(sys.argv[1], load_external_data=False)
sizes = dict(word.split("=") for word in sys.argv[2:])
for value in list(model.graph.input) + list(model.graph.output):
    for dim in value.type.tensor_type.shape.dim:
        if dim.dim_param in sizes:
            dim.dim_value = int(sizes[dim.dim_param])
model = shape_inference.infer_shapes(model, data_prop=True)
for value in model.graph.value_info:
    dims = value.type.tensor_type.shape.dim
    if value.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in dims):
        print(value.name, *(dim.dim_value for dim in dims))
