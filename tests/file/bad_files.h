// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "berth/base/error.h"

// Inconsistent files, each with the error it must produce. They are made by generators, so that each kind of
// inconsistency comes in all its forms. They are also the corpus of the fuzz tests.
namespace berth::testing {

struct BadFile {
  std::string hazard;  // the row of docs/hazards.md: "F8"
  std::string what;    // what is wrong with it
  std::string bytes;
  ErrorCode code = ErrorCode::format_error;
  std::string rule = {};                           // expected fact "rule" of the error
  std::string name = {};                           // expected fact "name": the tensor
  bool lax = false;                                // whether it is opened with that option
  std::map<std::string, std::string> beside = {};  // other files of the folder
};

std::vector<BadFile> bad_safetensors();
std::vector<BadFile> bad_indices();
std::vector<BadFile> bad_npy();
std::vector<BadFile> bad_npz();

// One valid file of each format.
std::string good_safetensors();
std::string good_index();
std::map<std::string, std::string> good_shards();
std::string good_npy();
std::string good_npz();

// These and more, each valid in another way.
std::vector<std::string> all_good_safetensors();
std::vector<std::string> all_good_indices();
std::vector<std::string> all_good_npy();
std::vector<std::string> all_good_npz();

}  // namespace berth::testing
