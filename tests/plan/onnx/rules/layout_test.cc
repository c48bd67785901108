// SPDX-License-Identifier: Apache-2.0
#include "berth/base/error.h"
#include "support/errors.h"
#include "support/onnx_writer.h"

// The output shapes of operators that move elements. The expected shapes are those of ONNX's own inference.
namespace berth::testing {
namespace {

TEST(OnnxRules, ReshapeWithoutTouchingElements) {
  expect_rows({
      {"Reshape", 21, {f32({2, 3, 4}), i64({6, 4})}, {}, {"f32 [6, 4]"}},
      {"Reshape", 21, {f32({2, 3, 4}), i64({-1, 4})}, {}, {"f32 [6, 4]"}},
      {"Reshape", 21, {f32({2, 3, 4}), i64({0, -1})}, {}, {"f32 [2, 12]"}},
      {"Reshape", 21, {f32({2, 3, 4}), i64({0, 0, -1})}, {}, {"f32 [2, 3, 4]"}},
      {"Reshape", 21, {f32({2, 3, 4}), i64({2, 3, 4, 1})}, {}, {"f32 [2, 3, 4, 1]"}},
      {"Reshape", 21, {f32({2, 3, 4}), i64({-1})}, {}, {"f32 [24]"}},
      {"Reshape", 21, {f32({2, 3, 4}), i64({4, -1, 3})}, {}, {"f32 [4, 2, 3]"}},
      {"Reshape", 21, {f32({0, 3, 4}), i64({3, 0})}, {integer("allowzero", 1)}, {"f32 [3, 0]"}},
      {"Reshape", 21, {f32({0, 3}), i64({0, 3})}, {}, {"f32 [0, 3]"}},
      {"Flatten", 21, {f32({2, 3, 4})}, {integer("axis", -3)}, {"f32 [1, 24]"}},
      {"Flatten", 21, {f32({2, 3, 4})}, {integer("axis", -2)}, {"f32 [2, 12]"}},
      {"Flatten", 21, {f32({2, 3, 4})}, {integer("axis", -1)}, {"f32 [6, 4]"}},
      {"Flatten", 21, {f32({2, 3, 4})}, {integer("axis", 0)}, {"f32 [1, 24]"}},
      {"Flatten", 21, {f32({2, 3, 4})}, {integer("axis", 1)}, {"f32 [2, 12]"}},
      {"Flatten", 21, {f32({2, 3, 4})}, {integer("axis", 2)}, {"f32 [6, 4]"}},
      {"Flatten", 21, {f32({2, 3, 4})}, {integer("axis", 3)}, {"f32 [24, 1]"}},
      {"Flatten", 21, {f32({2, 3, 4})}, {}, {"f32 [2, 12]"}},
      {"Flatten", 21, {f32({5})}, {}, {"f32 [5, 1]"}},
      {"Squeeze", 21, {f32({1, 3, 1, 4}), i64({0})}, {}, {"f32 [3, 1, 4]"}},
      {"Squeeze", 21, {f32({1, 3, 1, 4}), i64({-2, 0})}, {}, {"f32 [3, 4]"}},
      {"Squeeze", 21, {f32({1, 3, 1, 4})}, {}, {"f32 [3, 4]"}},
      {"Squeeze", 11, {f32({1, 3, 1, 4})}, {integers("axes", {2})}, {"f32 [1, 3, 4]"}},
      {"Squeeze", 11, {f32({1, 3, 1, 4})}, {}, {"f32 [3, 4]"}},
      {"Unsqueeze", 21, {f32({3, 4}), i64({0})}, {}, {"f32 [1, 3, 4]"}},
      {"Unsqueeze", 21, {f32({3, 4}), i64({0, -1})}, {}, {"f32 [1, 3, 4, 1]"}},
      {"Unsqueeze", 21, {f32({3, 4}), i64({3, 1})}, {}, {"f32 [3, 1, 4, 1]"}},
      {"Unsqueeze", 11, {f32({3, 4})}, {integers("axes", {0, 2})}, {"f32 [1, 3, 1, 4]"}},
      {"Unsqueeze", 21, {f32({}), i64({0})}, {}, {"f32 [1]"}},
      {"Transpose", 21, {f32({2, 3, 4})}, {}, {"f32 [4, 3, 2]"}},
      {"Transpose", 21, {f32({2, 3, 4})}, {integers("perm", {1, 2, 0})}, {"f32 [3, 4, 2]"}},
      {"Transpose", 21, {f32({2, 3, 4})}, {integers("perm", {0, 2, 1})}, {"f32 [2, 4, 3]"}},
      {"DepthToSpace", 21, {f32({1, 8, 2, 3})}, {integer("blocksize", 2), words("mode", "DCR")}, {"f32 [1, 2, 4, 6]"}},
      {"DepthToSpace", 21, {f32({1, 8, 2, 3})}, {integer("blocksize", 2), words("mode", "CRD")}, {"f32 [1, 2, 4, 6]"}},
      {"SpaceToDepth", 21, {f32({1, 2, 4, 6})}, {integer("blocksize", 2)}, {"f32 [1, 8, 2, 3]"}},
  });
}

TEST(OnnxRules, ChooseAndJoinElements) {
  expect_rows({
      {"Concat", 21, {f32({2, 3, 4}), f32({2, 3, 4}), f32({2, 3, 4})}, {integer("axis", 0)}, {"f32 [6, 3, 4]"}},
      {"Concat", 21, {f32({2, 3, 4}), f32({2, 3, 4}), f32({2, 3, 4})}, {integer("axis", 1)}, {"f32 [2, 9, 4]"}},
      {"Concat", 21, {f32({2, 3, 4}), f32({2, 3, 4}), f32({2, 3, 4})}, {integer("axis", 2)}, {"f32 [2, 3, 12]"}},
      {"Concat", 21, {f32({2, 3, 4}), f32({2, 3, 4}), f32({2, 3, 4})}, {integer("axis", -1)}, {"f32 [2, 3, 12]"}},
      {"Concat", 21, {f32({2, 3}), f32({2, 5})}, {integer("axis", 1)}, {"f32 [2, 8]"}},
      {"Concat", 21, {f32({2, 3})}, {integer("axis", 0)}, {"f32 [2, 3]"}},
      {"Split", 21, {f32({6, 4})}, {integer("num_outputs", 3)}, {"f32 [2, 4]", "f32 [2, 4]", "f32 [2, 4]"}},
      {"Split", 21, {f32({7, 4})}, {integer("num_outputs", 3)}, {"f32 [3, 4]", "f32 [3, 4]", "f32 [1, 4]"}},
      {"Split", 21, {f32({7, 4}), i64({2, 5})}, {}, {"f32 [2, 4]", "f32 [5, 4]"}},
      {"Split", 21, {f32({3, 7}), i64({2, 5})}, {integer("axis", -1)}, {"f32 [3, 2]", "f32 [3, 5]"}},
      {"Split", 11, {f32({6, 4})}, {}, {"f32 [3, 4]", "f32 [3, 4]"}},
      {"Split", 11, {f32({6, 4})}, {integers("split", {1, 5})}, {"f32 [1, 4]", "f32 [5, 4]"}},
      {"Split", 13, {f32({6, 4})}, {}, {"f32 [2, 4]", "f32 [2, 4]", "f32 [2, 4]"}},
      {"Gather", 21, {f32({3, 4, 5}), typed(kInt64, {2, 2})}, {integer("axis", 0)}, {"f32 [2, 2, 4, 5]"}},
      {"Gather", 21, {f32({3, 4, 5}), i64_scalar(1)}, {integer("axis", 0)}, {"f32 [4, 5]"}},
      {"Gather", 21, {f32({3, 4, 5}), typed(kInt64, {2, 2})}, {integer("axis", 1)}, {"f32 [3, 2, 2, 5]"}},
      {"Gather", 21, {f32({3, 4, 5}), i64_scalar(1)}, {integer("axis", 1)}, {"f32 [3, 5]"}},
      {"Gather", 21, {f32({3, 4, 5}), typed(kInt64, {2, 2})}, {integer("axis", -1)}, {"f32 [3, 4, 2, 2]"}},
      {"Gather", 21, {f32({3, 4, 5}), i64_scalar(1)}, {integer("axis", -1)}, {"f32 [3, 4]"}},
      {"GatherElements", 21, {f32({3, 4}), typed(kInt64, {2, 4})}, {integer("axis", 0)}, {"f32 [2, 4]"}},
      {"GatherND", 21, {f32({2, 3, 4}), typed(kInt64, {5, 2})}, {}, {"f32 [5, 4]"}},
      {"GatherND", 21, {f32({2, 3, 4}), typed(kInt64, {2, 1})}, {integer("batch_dims", 1)}, {"f32 [2, 4]"}},
      {"GatherND", 21, {f32({2, 3, 4}), typed(kInt64, {7, 3})}, {}, {"f32 [7]"}},
      {"GatherND", 21, {f32({2, 3, 4}), typed(kInt64, {5, 6, 1})}, {}, {"f32 [5, 6, 3, 4]"}},
      {"ScatterElements", 21, {f32({3, 4}), typed(kInt64, {2, 4}), f32({2, 4})}, {}, {"f32 [3, 4]"}},
      {"ScatterND", 21, {f32({3, 4}), typed(kInt64, {2, 1}), f32({2, 4})}, {}, {"f32 [3, 4]"}},
      {"Scatter", 9, {f32({3, 4}), typed(kInt64, {2, 4}), f32({2, 4})}, {}, {"f32 [3, 4]"}},
      {"OneHot", 21, {typed(kInt64, {2, 3}), i64_scalar(10), f32({2})}, {}, {"f32 [2, 3, 10]"}},
      {"OneHot", 21, {typed(kInt64, {2, 3}), i64({10}), f32({2})}, {integer("axis", 1)}, {"f32 [2, 10, 3]"}},
      {"OneHot", 21, {typed(kInt64, {2, 3}), i64_scalar(10), typed(kInt32, {2})}, {integer("axis", 0)}, {"i32 [10, 2, 3]"}},
      {"Trilu", 21, {f32({3, 4})}, {}, {"f32 [3, 4]"}},
      {"ReverseSequence", 21, {f32({3, 4}), typed(kInt64, {4})}, {}, {"f32 [3, 4]"}},
      {"TensorScatter", 24, {f32({2, 4, 5, 8}), f32({2, 4, 1, 8})}, {}, {"f32 [2, 4, 5, 8]"}},
      {"RotaryEmbedding", 23, {f32({2, 4, 5, 8}), f32({10, 4}), f32({10, 4}), typed(kInt64, {2, 5})}, {}, {"f32 [2, 4, 5, 8]"}},
  });
}

TEST(OnnxRules, SliceAsTheSpecificationClamps) {
  expect_rows({
      {"Slice", 21, {f32({5, 9, 8}), i64({-100, 2}), i64({-2, -2}), i64({0, 2}), i64({3, -1})}, {}, {"f32 [1, 9, 0]"}},
      {"Slice", 21, {f32({3}), i64({-1}), i64({INT64_MAX}), i64({-1}), i64({-2})}, {}, {"f32 [0]"}},
      {"Slice", 21, {f32({7}), i64({100}), i64({5}), i64({0}), i64({-2})}, {}, {"f32 [1]"}},
      {"Slice",
       21,
       {f32({3, 2, 9, 4}), i64({-1, 100}), i64({INT64_MAX, 4611686018427387904}), i64({3, 1}), i64({-2, 1})},
       {},
       {"f32 [3, 0, 9, 0]"}},
      {"Slice", 21, {f32({9}), i64({2}), i64({-INT64_MAX}), i64({0}), i64({1})}, {}, {"f32 [0]"}},
      {"Slice", 21, {f32({9}), i64({1}), i64({INT64_MAX}), i64({0}), i64({3})}, {}, {"f32 [3]"}},
      {"Slice", 21, {f32({6, 4, 3}), i64({100, -100}), i64({0, 5}), i64({1, 2}), i64({-1, -2})}, {}, {"f32 [6, 3, 0]"}},
      {"Slice", 9, {f32({5, 9, 5, 8})}, {integers("starts", {0}), integers("ends", {1}), integers("axes", {0})}, {"f32 [1, 9, 5, 8]"}},
      {"Slice", 21, {f32({5, 8, 2}), i64({-1, 0}), i64({1, INT64_MAX}), i64({-3, -1}), i64({-2, -2})}, {}, {"f32 [2, 8, 0]"}},
      {"Slice", 21, {f32({1}), i64({1}), i64({-2}), i64({0}), i64({-1})}, {}, {"f32 [1]"}},
      {"Slice", 21, {f32({8, 2, 7, 5}), i64({2}), i64({-1}), i64({0}), i64({-2})}, {}, {"f32 [0, 2, 7, 5]"}},
      {"Slice", 21, {f32({7}), i64({100}), i64({-1}), i64({0}), i64({1})}, {}, {"f32 [0]"}},
      {"Slice", 21, {f32({4}), i64({-100}), i64({-1}), i64({-1}), i64({-2})}, {}, {"f32 [0]"}},
      {"Slice", 9, {f32({9})}, {integers("starts", {2}), integers("ends", {4611686018427387904}), integers("axes", {0})}, {"f32 [7]"}},
      {"Slice", 21, {f32({3}), i64({2}), i64({-1}), i64({0}), i64({-1})}, {}, {"f32 [0]"}},
      {"Slice",
       21,
       {f32({3, 3, 3}), i64({-1, 1, 100}), i64({4611686018427387904, 4611686018427387904, INT64_MAX}), i64({0, 1, -1}), i64({-1, 1, -2})},
       {},
       {"f32 [0, 2, 0]"}},
      {"Slice",
       21,
       {f32({1, 4, 4}), i64({-2, 0, 100}), i64({-INT64_MAX, -INT64_MAX, 1}), i64({-3, -2, 2}), i64({-1, -2, -1})},
       {},
       {"f32 [1, 1, 2]"}},
      {"Slice", 21, {f32({7, 8, 7}), i64({2}), i64({-1}), i64({-3}), i64({1})}, {}, {"f32 [4, 8, 7]"}},
      {"Slice",
       21,
       {f32({9, 5, 8}), i64({2, -100}), i64({INT64_MAX, 4611686018427387904}), i64({2, 1}), i64({1, -1})},
       {},
       {"f32 [9, 0, 6]"}},
      {"Slice",
       21,
       {f32({7, 5, 1, 7}), i64({1, -1, 1}), i64({-INT64_MAX, 1, 1}), i64({1, -1, -4}), i64({1, 3, 3})},
       {},
       {"f32 [0, 0, 1, 0]"}},
      {"Slice", 21, {f32({9, 9, 7, 1}), i64({100, 2}), i64({-INT64_MAX, 3}), i64({-3, -4}), i64({1, 3})}, {}, {"f32 [1, 0, 7, 1]"}},
      {"Slice", 21, {f32({4, 9, 4, 1}), i64({2, -100}), i64({-INT64_MAX, 0}), i64({-1, 1}), i64({3, -1})}, {}, {"f32 [4, 0, 4, 0]"}},
      {"Slice", 21, {f32({5, 9, 8}), i64({0, -1}), i64({-2, 5}), i64({2, -2}), i64({1, -1})}, {}, {"f32 [5, 3, 6]"}},
      {"Slice", 21, {f32({1, 5, 4}), i64({100, 0}), i64({INT64_MAX, -2}), i64({1, -3}), i64({1, 1})}, {}, {"f32 [0, 0, 4]"}},
      {"Slice", 21, {f32({7, 9}), i64({100, 0}), i64({-2, 5}), i64({0, -1}), i64({-2, -1})}, {}, {"f32 [1, 0]"}},
      {"Slice", 21, {f32({5}), i64({-100}), i64({5}), i64({0}), i64({1})}, {}, {"f32 [5]"}},
      {"Slice", 21, {f32({4, 8, 3}), i64({0}), i64({0}), i64({0}), i64({1})}, {}, {"f32 [0, 8, 3]"}},
      {"Slice", 9, {f32({7, 4, 3})}, {integers("starts", {0}), integers("ends", {-1}), integers("axes", {1})}, {"f32 [7, 3, 3]"}},
      {"Slice", 21, {f32({8, 1, 8}), i64({-2}), i64({3}), i64({1}), i64({-1})}, {}, {"f32 [8, 0, 8]"}},
      {"Slice", 9, {f32({6, 4})}, {integers("starts", {-1}), integers("ends", {INT64_MAX}), integers("axes", {1})}, {"f32 [6, 1]"}},
  });
}

TEST(OnnxRules, MakeTensorsOfAGivenSize) {
  expect_rows({
      {"Shape", 21, {f32({6})}, {}, {"i64 [1]"}},
      {"Shape", 21, {f32({5, 1, 1, 6})}, {}, {"i64 [4]"}},
      {"Shape", 21, {f32({5, 2, 5})}, {}, {"i64 [3]"}},
      {"Shape", 21, {f32({2, 3, 4})}, {}, {"i64 [3]"}},
      {"Shape", 21, {f32({2, 3, 4})}, {integer("start", 1)}, {"i64 [2]"}},
      {"Shape", 21, {f32({2, 3, 4})}, {integer("start", -2)}, {"i64 [2]"}},
      {"Shape", 21, {f32({2, 3, 4})}, {integer("start", 0), integer("end", 2)}, {"i64 [2]"}},
      {"Shape", 21, {f32({2, 3, 4})}, {integer("start", 1), integer("end", -1)}, {"i64 [1]"}},
      {"Shape", 21, {f32({2, 3, 4})}, {integer("start", -10), integer("end", 10)}, {"i64 [3]"}},
      {"Shape", 21, {f32({2, 3, 4})}, {integer("start", 3), integer("end", 1)}, {"i64 [0]"}},
      {"Size", 21, {f32({2, 3})}, {}, {"i64 []"}},
      {"Constant", 21, {}, {integer("value_int", 3)}, {"i64 []"}},
      {"Constant", 21, {}, {integers("value_ints", {1, 2})}, {"i64 [2]"}},
      {"Constant", 21, {}, {real("value_float", 3.0F)}, {"f32 []"}},
      {"Constant", 21, {}, {reals("value_floats", {1.0F, 2.0F})}, {"f32 [2]"}},
      {"ConstantOfShape", 21, {i64({2, 3})}, {}, {"f32 [2, 3]"}},
      {"ConstantOfShape", 21, {i64({})}, {}, {"f32 []"}},
      {"Range", 21, {i64_scalar(0), i64_scalar(10), i64_scalar(3)}, {}, {"i64 [4]"}},
      {"Range", 21, {i64_scalar(10), i64_scalar(0), i64_scalar(-3)}, {}, {"i64 [4]"}},
      {"Range", 21, {i64_scalar(5), i64_scalar(5), i64_scalar(1)}, {}, {"i64 [0]"}},
      {"Range", 21, {i64_scalar(0), i64_scalar(-5), i64_scalar(1)}, {}, {"i64 [0]"}},
      {"Range", 21, {i64_scalar(-3), i64_scalar(4), i64_scalar(2)}, {}, {"i64 [4]"}},
      {"RandomNormal", 21, {}, {integers("shape", {2, 3})}, {"f32 [2, 3]"}},
      {"RandomUniform", 21, {}, {integers("shape", {2, 3}), integer("dtype", 11)}, {"f64 [2, 3]"}},
      {"RandomNormalLike", 21, {f32({2, 3})}, {}, {"f32 [2, 3]"}},
      {"RandomUniformLike", 21, {f32({2, 3})}, {integer("dtype", 10)}, {"f16 [2, 3]"}},
      {"EyeLike", 21, {f32({2, 3})}, {}, {"f32 [2, 3]"}},
      {"EyeLike", 21, {f32({2, 3})}, {integer("dtype", 7)}, {"i64 [2, 3]"}},
      {"Expand", 21, {f32({3, 1}), i64({3, 1})}, {}, {"f32 [3, 1]"}},
      {"Expand", 21, {f32({3, 1}), i64({2, 1, 6})}, {}, {"f32 [2, 3, 6]"}},
      {"Expand", 21, {f32({3, 1}), i64({3, 4})}, {}, {"f32 [3, 4]"}},
      {"Expand", 21, {f32({3, 1}), i64({1})}, {}, {"f32 [3, 1]"}},
      {"Expand", 21, {f32({3, 1}), i64({})}, {}, {"f32 [3, 1]"}},
      {"Tile", 21, {f32({2, 3}), i64({2, 5})}, {}, {"f32 [4, 15]"}},
      {"Tile", 21, {f32({2, 3}), i64({0, 1})}, {}, {"f32 [0, 3]"}},
      {"Pad", 21, {f32({2, 3}), i64({1, 2, 3, 4})}, {}, {"f32 [6, 9]"}},
      {"Pad", 21, {f32({2, 3, 4}), i64({1, 2, 3, 4}), floats({0.0F}), i64({0, 2})}, {}, {"f32 [6, 3, 10]"}},
      {"Pad", 21, {f32({2, 3, 4}), i64({1, -1}), left_out(), i64({-1})}, {}, {"f32 [2, 3, 4]"}},
      {"Pad", 2, {f32({2, 3})}, {integers("pads", {0, 1, 0, 2})}, {"f32 [2, 6]"}},
      {"Pad", 21, {f32({5, 3}), i64({-1, 0, -2, 0})}, {}, {"f32 [2, 3]"}},
      {"Resize", 21, {f32({1, 3, 7, 9}), left_out(), floats({1.0F, 1.0F, 2.0F, 2.0F})}, {}, {"f32 [1, 3, 14, 18]"}},
      {"Resize", 10, {f32({1, 3, 7, 9}), floats({1.0F, 1.0F, 2.0F, 2.0F})}, {}, {"f32 [1, 3, 14, 18]"}},
      {"Resize",
       21,
       {f32({1, 3, 7, 9}), left_out(), floats({1.0F, 1.0F, 0.6000000238418579F, 1.7000000476837158F})},
       {},
       {"f32 [1, 3, 4, 15]"}},
      {"Resize", 10, {f32({1, 3, 7, 9}), floats({1.0F, 1.0F, 0.6000000238418579F, 1.7000000476837158F})}, {}, {"f32 [1, 3, 4, 15]"}},
      {"Resize",
       21,
       {f32({1, 3, 7, 9}), left_out(), floats({1.0F, 1.0F, 1.333299994468689F, 2.5999999046325684F})},
       {},
       {"f32 [1, 3, 9, 23]"}},
      {"Resize", 10, {f32({1, 3, 7, 9}), floats({1.0F, 1.0F, 1.333299994468689F, 2.5999999046325684F})}, {}, {"f32 [1, 3, 9, 23]"}},
      {"Resize", 21, {f32({1, 3, 7, 9}), floats({}), floats({}), i64({1, 3, 14, 15})}, {}, {"f32 [1, 3, 14, 15]"}},
      {"Resize", 21, {f32({1, 3, 7, 9}), left_out(), left_out(), i64({1, 3, 14, 15})}, {}, {"f32 [1, 3, 14, 15]"}},
      {"Resize", 21, {f32({1, 3, 7, 9}), left_out(), left_out(), i64({14, 15})}, {integers("axes", {2, 3})}, {"f32 [1, 3, 14, 15]"}},
      {"Resize", 21, {f32({1, 3, 7, 9}), left_out(), floats({2.0F, 1.5F})}, {integers("axes", {2, 3})}, {"f32 [1, 3, 14, 13]"}},
      {"Upsample", 9, {f32({1, 3, 7, 9}), floats({1.0F, 1.0F, 2.0F, 2.0F})}, {}, {"f32 [1, 3, 14, 18]"}},
      {"Upsample", 7, {f32({1, 3, 7, 9})}, {reals("scales", {1.0F, 1.0F, 2.0F, 2.0F})}, {"f32 [1, 3, 14, 18]"}},
      {"Upsample", 9, {f32({1, 3, 7, 9}), floats({1.0F, 1.0F, 0.6000000238418579F, 1.7000000476837158F})}, {}, {"f32 [1, 3, 4, 15]"}},
      {"Upsample", 7, {f32({1, 3, 7, 9})}, {reals("scales", {1.0F, 1.0F, 0.6F, 1.7F})}, {"f32 [1, 3, 4, 15]"}},
      {"Upsample", 9, {f32({1, 3, 7, 9}), floats({1.0F, 1.0F, 1.333299994468689F, 2.5999999046325684F})}, {}, {"f32 [1, 3, 9, 23]"}},
      {"Upsample", 7, {f32({1, 3, 7, 9})}, {reals("scales", {1.0F, 1.0F, 1.3333F, 2.6F})}, {"f32 [1, 3, 9, 23]"}},
      {"GridSample", 21, {f32({1, 3, 7, 9}), f32({1, 4, 5, 2})}, {}, {"f32 [1, 3, 4, 5]"}},
      {"GridSample", 21, {f32({1, 3, 7, 9, 4}), f32({1, 4, 5, 6, 3})}, {}, {"f32 [1, 3, 4, 5, 6]"}},
  });
}

// An opset below the first one of a rule, attributes that became inputs, and inputs that determine no shape.
TEST(OnnxRules, SayNothingWhereNothingFollows) {
  expect_rows({
      {"NonZero", 21, {f32({2, 3})}, {}, {"?"}},
      {"Reshape", 21, {f32({2, 3}), typed(kInt64, {2})}, {}, {"?"}},
      {"Reshape", 21, {f32({2, 3}), i64({4, -1})}, {}, {"?"}},
      {"Reshape", 21, {f32({2, 3}), i64({-1, -1})}, {}, {"?"}},
      {"Gather", 21, {f32({2, 3}), i64({1})}, {integer("axis", 2)}, {"?"}},
      {"Concat", 21, {f32({2, 3}), f32({3, 3})}, {integer("axis", 1)}, {"?"}},
      {"Transpose", 21, {f32({2, 3})}, {integers("perm", {0, 0})}, {"?"}},
      {"Split", 21, {f32({5, 4})}, {integer("num_outputs", 4)}, {"?", "?", "?", "?"}},
      {"Tile", 21, {f32({2, 3}), i64({INT64_MAX, 2})}, {}, {"?"}},
      {"NoSuchOperator", 21, {f32({2, 3})}, {}, {"?"}},
  });
}

TEST(OnnxRules, SayWhatContradictsWhat) {
  const auto why_of = [](const RuleRow& row) {
    try {
      expect_rows({row});
    } catch (const ArgumentError& error) {
      return std::string(to_string(error.code())) + ": " + error.why();
    }
    return std::string("no error");
  };
  const std::string clash = "size_mismatch: its inputs contradict each other: the shapes ";
  EXPECT_EQ(why_of({"MatMul", 21, {f32({2, 3}), f32({4, 5})}, {}, {"?"}}), clash + "[2, 3] and [4, 5] cannot be multiplied");
  EXPECT_EQ(why_of({"Add", 21, {f32({2, 3}), f32({4})}, {}, {"?"}}), clash + "[2, 3] and [4] cannot be broadcast");
  EXPECT_EQ(why_of({"Max", 21, {f32({2, 3}), f32({4})}, {}, {"?"}}), clash + "[2, 3] and [4] cannot be broadcast");
  EXPECT_EQ(why_of({"Where", 21, {typed(kBool, {2}), f32({3}), f32({4})}, {}, {"?"}}), clash + "[3] and [4] cannot be broadcast");
  EXPECT_EQ(why_of({"Reshape", 21, {f32({2, 3}), i64({4, 2})}, {}, {"?"}}), clash + "[2, 3] and [4, 2] cannot be of the same elements");
  EXPECT_EQ(why_of({"ConstantOfShape", 21, {i64({2, -3})}, {}, {"?"}}), "size_mismatch: its shape has a dimension of -3");
}

TEST(OnnxRules, AreListedInOrderAndAreMany) {
  const std::vector<std::string_view> names = onnx_shape_rules();
  EXPECT_GE(names.size(), 150U);
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace berth::testing
