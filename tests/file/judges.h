// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

// Judges of the parsers of file formats: whatever the bytes, the result is an Error, or offsets and sizes that are
// inside the file and agree with a slow, obvious parser.
namespace berth::testing {

// What is wrong with the parser's result; nothing when it is right. The parser's own Error passes through.
using Finding = std::optional<std::string>;

// `more` is the number of bytes by which the parser is told too large a file size: it stands for a parser with a bounds
// bug, which must be found.
Finding judge_safetensors(const std::string& bytes, std::uint64_t more, bool lax);
Finding judge_index(const std::string& bytes, bool lax);
Finding judge_npy(const std::string& bytes, std::uint64_t more);
Finding judge_npz(const std::string& bytes, std::uint64_t more);

}  // namespace berth::testing
