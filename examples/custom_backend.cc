// SPDX-License-Identifier: Apache-2.0
// Adds a new kind of device from outside the library: ledger_backend.h is all it takes. Storages, views,
// conversion and limits then work on it as on any other device.
#include "ledger_backend.h"

#include <memory>

#include "berth/berth.h"
#include "berth/extend.h"
#include "expect.h"

namespace {

using namespace berth;
using ledger::Ledger;
using ledger::LedgerFactory;

}  // namespace

int main() {
  register_backend("ledger", std::make_unique<LedgerFactory>());
  const auto& behind = static_cast<const Ledger&>(backend("ledger:0"));
  {
    const Storage host = full({3, 4}, 1.5, DType::f32, "cpu");
    const Storage x = zeros({3, 4}, DType::f32, "ledger:0");
    expect(x.item<float>({2, 3}) == 0, "zeros on a new kind of device");
    x.copy_from(host);
    expect(behind.bytes_in() == 48, "the ledger saw 48 bytes come in");
    expect(equal(x.transpose(0, 1).to("cpu"), host.transpose(0, 1)), "a view of it goes to the host");
    expect(equal(x.to(DType::bf16).to("cpu").to(DType::f32), host), "it converts");

    const auto memory = limit(direct("ledger:0"), 64_KiB);
    const Storage kept = empty({48_KiB}, DType::u8, memory);
    expect(!try_empty({32_KiB}, DType::u8, memory), "a limit works on it");
    expect(!try_empty({ledger::kCapacity}, DType::u8, "ledger:0"), "it runs full, and says so");
  }
  default_allocator("ledger:0")->release_cached();
  expect(behind.memory_info().free_bytes == ledger::kCapacity, "everything came back");
  return g_right ? 0 : 1;
}
