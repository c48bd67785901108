// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/search_steps.h"

#include "base/text.h"

namespace berth::internal::memory {

namespace {

constinit thread_local SearchSteps t_last_search;

}  // namespace

SearchSteps& last_search() noexcept { return t_last_search; }

std::vector<std::string> SearchSteps::to_strings() const {
  std::vector<std::string> steps;
  steps.push_back(text::join("emptied the caches of all threads: ", text::bytes(emptied_bytes), " came back"));
  steps.push_back(text::join("moved free pages together: ", moves, moves == 1 ? " move" : " moves"));
  if (!waits_for_streams)
    steps.emplace_back("asked the streams what is over, and did not wait for them (wait_for_streams is off)");
  else
    steps.push_back(text::join("waited for the work of streams behind what was freed: ", waits, waits == 1 ? " time" : " times"));
  if (asked_relatives) steps.emplace_back("took back what pools that share pages with it have cached");
  return steps;
}

}  // namespace berth::internal::memory
