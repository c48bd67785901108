// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// Models made here, for the tour and for tests: the bytes of ONNX files whose weights are nodes that fill a shape with zeros, so that they
// are small whatever they stand for. Shapes are given for inputs and outputs alone.
namespace berth::internal::cli::samples {

struct ResidualSample {
  int stages = 4;            // each halves the picture and doubles the channels
  int blocks_per_stage = 2;  // two convolutions each
  int channels = 64;         // of the first stage
  int picture = 224;         // pixels along a side
  int classes = 1000;
};

// Pictures of [N, 3, picture, picture] to probabilities of [N, classes], with a symbol "N".
std::string sample_residual_network(const ResidualSample& sizes = {});

struct TransformerSample {
  int layers = 6;
  int width = 512;
  int heads = 8;
  int words = 32000;  // of the vocabulary
};

// Words of [batch, seq] to states of [batch, seq, width], with these two symbols. Heads are split by shapes computed in the model.
std::string sample_transformer(const TransformerSample& sizes = {});

// Small ones, each with a symbol "N".
std::string sample_branches();       // an If whose branches read values from outside
std::string sample_loop();           // a Loop that adds a captured value in each turn
std::string sample_external_data();  // a weight of [16, 16] floats at offset 4096 of weights.bin

}  // namespace berth::internal::cli::samples
