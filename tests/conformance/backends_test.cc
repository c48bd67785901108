// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <ostream>
#include <tuple>

#include "conformance/backend_suite.h"
#include "ledger_backend.h"

// Every backend there is, against every check.
namespace berth::testing {
namespace {

// The backend of the example, which is not part of the library.
Backend& ledger_backend() {
  static Backend& made = []() -> Backend& {
    register_backend("ledger", std::make_unique<ledger::LedgerFactory>());
    return backend("ledger:0");
  }();
  return made;
}

Backend& sim(const SimOptions& options) { return backend(make_sim(options)); }

std::vector<BackendSubject> backend_subjects() {
  return {
      {"cpu", []() -> Backend& { return backend("cpu"); }},
      {"pinned", []() -> Backend& { return backend("pinned"); }},
      {"shared", []() -> Backend& { return backend("shared"); }},
      {"sim", []() -> Backend& { return backend("sim:0"); }},
      {"sim_without_background", []() -> Backend& { return sim({.seed = 3, .background = false}); }},
      {"sim_with_small_pages", []() -> Backend& { return sim({.capacity_bytes = 4_MiB, .page_bytes = 4096, .seed = 4}); }},
      {"sim_with_huge_pages", []() -> Backend& { return sim({.capacity_bytes = 64_MiB, .page_bytes = 2_MiB, .seed = 5}); }},
      {"sim_with_kernels", []() -> Backend& { return sim({.seed = 6, .kernels = true, .wants_pinned = true}); }},
      {"ledger", ledger_backend},
  };
}

class BackendConformance : public ::testing::TestWithParam<std::tuple<BackendSubject, BackendCheck>> {};

TEST_P(BackendConformance, Holds) {
  const auto& [subject, check] = GetParam();
  Report report;
  check.run(subject.get(), report);
  EXPECT_TRUE(report.ok()) << report.text();
}

INSTANTIATE_TEST_SUITE_P(All, BackendConformance,
                         ::testing::Combine(::testing::ValuesIn(backend_subjects()),
                                            ::testing::ValuesIn(backend_checks().begin(), backend_checks().end())),
                         [](const auto& param) {
                           return std::get<0>(param.param).name + "_" + std::string(std::get<1>(param.param).name);
                         });

}  // namespace

void PrintTo(const BackendSubject& subject, std::ostream* out) { *out << subject.name; }
void PrintTo(const BackendCheck& check, std::ostream* out) { *out << check.name; }

}  // namespace berth::testing
