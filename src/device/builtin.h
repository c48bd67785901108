// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "berth/device/backend.h"

// The factories of the kinds that come with the library, each in its own folder.
namespace berth::internal::device {

std::unique_ptr<BackendFactory> make_cpu_factory();
std::unique_ptr<BackendFactory> make_pinned_factory();
std::unique_ptr<BackendFactory> make_sim_factory();
std::unique_ptr<BackendFactory> make_cuda_factory();
std::unique_ptr<BackendFactory> make_shared_factory();

}  // namespace berth::internal::device
