// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/verify.h"
#include "fuzz/graphs.h"
#include "fuzz/words.h"

// Plans with their graphs: none is accepted that the verifier refuses.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) {
  const Plan plan = read_plan_json(bytes);
  judge(plan.graph());
  require(verify_plan(plan.graph(), plan.tables()).empty(), "a plan that was read passes the verifier");
  require(read_plan_json(to_json(PlanFile{plan})).tables() == plan.tables(), "a plan that was read is written and read again the same");
}

const Registered plan_json({.name = "plan_json",
                            .run = run,
                            .words = json_words({"\"graph\"",        "\"plan\"",     "\"strategy\"",   "\"outcome\"",
                                                 "\"optimal\"",      "\"feasible\"", "\"peak_bytes\"", "\"lower_bound_bytes\"",
                                                 "\"nodes\"",        "\"parallel\"", "\"arenas\"",     "\"slots\"",
                                                 "\"places\"",       "\"sharing\"",  "\"buffer\"",     "\"offset\"",
                                                 "\"extent_bytes\"", "\"edges\"",    "\"chunks\"",     "\"order\"",
                                                 "\"proof\"",        "\"kept\""})});

}  // namespace
}  // namespace berth::testing::fuzz
