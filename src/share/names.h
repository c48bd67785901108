// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// The names of shared storages and channels. Any thread.
namespace berth::internal::share {

// Throws ArgumentError(invalid_name) for an invalid name: see share/named.h.
void require_name(std::string_view name, const char* asked);
bool is_name(std::string_view name) noexcept;

std::string fresh_name();                        // 128 random bits
std::string socket_name(std::string_view name);  // in the abstract namespace, per user
std::string names_folder();                      // the directory of named storages

}  // namespace berth::internal::share
