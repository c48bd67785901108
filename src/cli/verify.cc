// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/plan.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/plan_file.h"
#include "cli/table.h"

// `berth verify`.
namespace berth::internal::cli {

namespace {

// An invalid file is an answer, not a usage error.
Exit answer_invalid(const std::string& path, const Error& error, bool json) {
  if (json) {
    JsonWriter out(JsonWriter::Style::pretty);
    out.begin_object().member("file", path).member("valid", false).key("error").json(to_json(error)).end_object();
    print(out.take() + "\n");
  }
  print_error(error);
  return Exit::no;
}

std::string together_json(const VerifyCommand& command, const std::vector<PlanProblem>& problems) {
  JsonWriter out(JsonWriter::Style::pretty);
  out.begin_object().key("files").begin_array();
  for (const std::string& path : command.paths) out.value(path);
  out.end_array().member("valid", problems.empty()).key("problems").begin_array();
  for (const PlanProblem& problem : problems)
    out.begin_object().member("kind", to_string(problem.kind)).member("text", problem.text).end_object();
  out.end_array().end_object();
  return out.take() + "\n";
}

Exit verify_together(const VerifyCommand& command) {
  std::vector<Plan> plans;
  for (const std::string& path : command.paths) {
    try {
      plans.push_back(read_plan(path, command.max_memory));
    } catch (const FormatError& error) {
      return answer_invalid(path, error, command.json);
    } catch (const ArgumentError& error) {
      if (error.code() != ErrorCode::plan_invalid) throw;
      return answer_invalid(path, error, command.json);
    }
  }
  const std::vector<PlanProblem> problems = verify_plans(plans);
  if (command.json) print(together_json(command, problems));
  if (!problems.empty()) {
    print_error(problems.front().text, "plan each range with --after the plan before it");
    return Exit::no;
  }
  std::string lines;
  for (std::size_t i = 0; i < plans.size(); ++i)
    lines += fmt::format("{} {}: nodes {} to {}, {}\n", paint(Mood::good, "✔"), text::printable(command.paths[i]),
                         plans[i].tables().nodes.begin, plans[i].tables().nodes.end, text::bytes(plans[i].peak_bytes()));
  if (!command.json) print(lines + "each finds what the ones before it left\n");
  return Exit::ok;
}

Exit verify_one(const std::string& path, const VerifyCommand& command) {
  const Input input = read_input(path, parse_room(command.max_memory));
  try {
    const Plan plan = read_plan_json(input.bytes, path, {.memory_bytes = input.room_bytes});
    JsonWriter out(JsonWriter::Style::pretty);
    out.begin_object().member("file", path).member("valid", true);
    plan.write_json(out);
    out.end_object();
    const std::string line =
        plan.has_locations() ? fmt::format("{} {}: {} for {} buffers, {}\n", paint(Mood::good, "✔"), text::printable(path),
                                           text::bytes(plan.peak_bytes()), plan.buffers().size(), to_string(plan.outcome()))
                             : fmt::format("{}: it places nothing, its outcome is {}\n", text::printable(path), to_string(plan.outcome()));
    print(command.json ? out.take() + "\n" : line);
    return plan.has_locations() ? Exit::ok : Exit::no;
  } catch (const Error& error) {
    return answer_invalid(path, error, command.json);
  }
}

}  // namespace

Exit run_verify(const VerifyCommand& command) {
  return command.paths.size() == 1 ? verify_one(command.paths.front(), command) : verify_together(command);
}

}  // namespace berth::internal::cli
