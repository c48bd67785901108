// SPDX-License-Identifier: Apache-2.0
#pragma once

// For those who extend berth: backends, the inner interface of allocators, the simulated device, routes of copies,
// results, checked arithmetic, and the JSON writer. examples/custom_backend.cc is a backend of a third party.

#include "berth/base/checked.h"
#include "berth/base/json.h"
#include "berth/base/result.h"
#include "berth/copy/convert.h"
#include "berth/copy/route.h"
#include "berth/device/backend.h"
#include "berth/device/element_copy.h"
#include "berth/device/sim.h"
#include "berth/memory/block_source.h"
#include "berth/memory/check.h"
#include "berth/memory/fail.h"
