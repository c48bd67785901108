// SPDX-License-Identifier: Apache-2.0
#include "driver_costs.h"

#include <array>

#include "berth/base/units.h"

namespace berth::bench {

namespace {

struct Row {
  double mib;
  std::array<double, 5> us;  // by DriverCall
};

constexpr std::array<Row, 4> kMeasured{{{2, {14, 1, 29, 19, 14}},  //
                                        {20, {13, 1, 29, 19, 31}},
                                        {128, {15, 1, 37, 22, 64}},  // release measured; the others between 20 and 1,024
                                        {1024, {32, 2, 101, 40, 603}}}};

}  // namespace

double driver_call_us(DriverCall call, std::size_t handle_bytes) noexcept {
  const double mib = static_cast<double>(handle_bytes) / static_cast<double>(1_MiB);
  const auto at = static_cast<std::size_t>(call);
  std::size_t i = 1;
  while (i + 1 < kMeasured.size() && mib > kMeasured[i].mib) ++i;
  const Row& below = kMeasured[i - 1];
  const Row& above = kMeasured[i];
  const double part = mib < below.mib ? 0 : (mib - below.mib) / (above.mib - below.mib);
  return below.us[at] + part * (above.us[at] - below.us[at]);
}

void DriverCalls::make(std::size_t handle_bytes) noexcept {
  ++made;
  us += driver_call_us(DriverCall::create, handle_bytes) + driver_call_us(DriverCall::map, handle_bytes) +
        driver_call_us(DriverCall::access, handle_bytes);
}

void DriverCalls::map_again(std::size_t handle_bytes) noexcept {
  ++moved;
  us += driver_call_us(DriverCall::map, handle_bytes) + driver_call_us(DriverCall::access, handle_bytes);
}

void DriverCalls::unmap_echo(std::size_t handle_bytes) noexcept { us += driver_call_us(DriverCall::unmap, handle_bytes); }

void DriverCalls::give_back(std::size_t handle_bytes) noexcept {
  ++given_back;
  us += driver_call_us(DriverCall::unmap, handle_bytes) + driver_call_us(DriverCall::release, handle_bytes);
}

}  // namespace berth::bench
