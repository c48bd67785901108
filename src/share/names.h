// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// The names of storages and channels.
namespace berth::internal::share {

// Throws ArgumentError(invalid_name) for a name that cannot be: see share/named.h.
void require_name(std::string_view name, const char* asked);
bool is_name(std::string_view name) noexcept;

std::string fresh_name();                        // 128 random bits
std::string socket_name(std::string_view name);  // of this user
std::string names_folder();                      // where named storages are

}  // namespace berth::internal::share
