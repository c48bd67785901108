// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "berth/device/backend.h"

// The factories of the built-in device kinds, each in its own folder. Called once, by kinds.cc.
namespace berth::internal::device {

std::unique_ptr<BackendFactory> make_cpu_factory();
std::unique_ptr<BackendFactory> make_pinned_factory();
std::unique_ptr<BackendFactory> make_sim_factory();
std::unique_ptr<BackendFactory> make_cuda_factory();
std::unique_ptr<BackendFactory> make_shared_factory();

}  // namespace berth::internal::device
