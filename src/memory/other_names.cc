// SPDX-License-Identifier: Apache-2.0
#include "memory/other_names.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace berth::internal::memory {

namespace {

struct OtherName {
  std::string_view theirs;
  std::string_view ours;
};

constexpr OtherName kStrategyNames[] = {{"Round", "rounded"}, {"Naive", "exact"}, {"Unpooled", "direct"}};

// Variables whose value is one of these strategies.
constexpr OtherName kTypeVariables[] = {{"MXNET_GPU_MEM_POOL_TYPE", "BERTH_CUDA_ALLOCATOR"},
                                        {"MXNET_CPU_MEM_POOL_TYPE", "BERTH_CPU_ALLOCATOR"},
                                        {"MXNET_CPU_PINNED_MEM_POOL_TYPE", "BERTH_PINNED_ALLOCATOR"}};

// Variables that set one option, and the option here.
constexpr OtherName kOptionVariables[] = {
    {"MXNET_USE_NAIVE_STORAGE_MANAGER", "BERTH_CUDA_ALLOCATOR=direct"},
    {"MXNET_GPU_MEM_POOL_PAGE_SIZE", "BERTH_CUDA_ALLOCATOR=rounded:least=4KiB"},
    {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "BERTH_CUDA_ALLOCATOR=rounded:cutoff=16MiB"},
    {"MXNET_GPU_MEM_POOL_RESERVE", "BERTH_CUDA_ALLOCATOR=rounded:limit=8GiB"},
};

bool is_same_name(std::string_view a, std::string_view b) {
  const auto lower = [](unsigned char c) { return std::tolower(c); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

template <std::size_t N>
std::string_view find_ours(const OtherName (&names)[N], std::string_view theirs) {
  const auto* const found = std::ranges::find_if(names, [&](const OtherName& name) { return is_same_name(name.theirs, theirs); });
  return found == std::end(names) ? std::string_view() : found->ours;
}

}  // namespace

std::string help_for_other_name(std::string_view text) {
  const std::size_t equals = text.find_first_of(":=");
  const std::string_view name = text.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  if (const auto ours = find_ours(kStrategyNames, name); !ours.empty()) return text::join("use ", ours, ", which is the same here");
  if (const auto ours = find_ours(kOptionVariables, name); !ours.empty()) return text::join("set ", ours);
  const std::string_view variable = find_ours(kTypeVariables, name);
  if (variable.empty()) return {};
  if (const auto ours = find_ours(kStrategyNames, value); !ours.empty()) return text::join("set ", variable, '=', ours);
  return text::join("set ", variable, " to rounded (Round there), exact (Naive), direct (Unpooled), or pool");
}

}  // namespace berth::internal::memory
