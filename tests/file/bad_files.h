// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "berth/base/error.h"

// Files that lie, each with the error it must meet. Made by generators, so that a kind of lie is told in all its forms. They are the corpus of
// the fuzz tests too.
namespace berth::testing {

struct BadFile {
  std::string hazard;  // the row of the hazards: "F8"
  std::string what;    // how it lies, in words
  std::string bytes;
  ErrorCode code = ErrorCode::format_error;
  std::string rule = {};                           // the fact of that name
  std::string name = {};                           // the fact of that name: the tensor
  bool lax = false;                                // opened so
  std::map<std::string, std::string> beside = {};  // other files of the folder
};

std::vector<BadFile> bad_safetensors();
std::vector<BadFile> bad_indices();
std::vector<BadFile> bad_npy();
std::vector<BadFile> bad_npz();

// One that is right, of each.
std::string good_safetensors();
std::string good_index();
std::map<std::string, std::string> good_shards();
std::string good_npy();
std::string good_npz();

// The same and more, each right in another way.
std::vector<std::string> all_good_safetensors();
std::vector<std::string> all_good_indices();
std::vector<std::string> all_good_npy();
std::vector<std::string> all_good_npz();

}  // namespace berth::testing
