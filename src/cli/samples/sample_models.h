// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// Sample models for the tour and for tests: ONNX files whose weights are nodes that fill a shape with zeros, so
// that they are small whatever they represent. Only inputs and outputs have shapes. Any thread.
namespace berth::internal::cli::samples {

struct ResidualSample {
  int stages = 4;            // each halves the image and doubles the channels
  int blocks_per_stage = 2;  // two convolutions each
  int channels = 64;         // of the first stage
  int picture = 224;         // width and height in pixels
  int classes = 1000;
};

// Maps images of [N, 3, picture, picture] to probabilities of [N, classes], with a symbol "N".
std::string sample_residual_network(const ResidualSample& sizes = {});

struct TransformerSample {
  int layers = 6;
  int width = 512;
  int heads = 8;
  int words = 32000;  // vocabulary size
};

// Maps words of [batch, seq] to states of [batch, seq, width], with symbols "batch" and "seq". Heads are split
// by shapes computed in the model.
std::string sample_transformer(const TransformerSample& sizes = {});

// Small ones, each with a symbol "N".
std::string sample_branches();       // an If whose branches capture outer values
std::string sample_loop();           // a Loop that adds a captured value in each iteration
std::string sample_external_data();  // a weight of [16, 16] floats at offset 4096 of weights.bin

}  // namespace berth::internal::cli::samples
