// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/allowance.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "observe/trace_forms.h"

namespace berth::internal::observe {

namespace {

constexpr std::string_view kHeader = "op,id,bytes,stream";
constexpr std::string_view kTaggedHeader = "op,id,bytes,stream,tag";

class TextReader {
 public:
  TextReader(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  Trace read() {
    base::reserve(trace_.events, most_events(rest_));
    while (next_line()) {
      base::checkpoint();
      if (fields_.empty() || is_header()) continue;
      base::append(trace_.events, read_event());
      check_pairing(trace_.events.back());
      if (tagged_) base::append(trace_.tags, read_tag());
      if (more_) refuse("there are more than four fields");
    }
    return std::move(trace_);
  }

 private:
  using enum TraceEvent::Operation;

  bool next_line() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    fields_ = line_;
    ++number_;
    return true;
  }

  bool is_header() {
    if (number_ != 1 || (fields_ != kHeader && fields_ != kTaggedHeader)) return false;
    tagged_ = fields_ == kTaggedHeader;
    if (tagged_) trace_.words.emplace_back();
    return true;
  }

  // No more than lines of as many characters as the shortest event has: short lines of other things take no memory.
  static std::size_t most_events(std::string_view text) {
    constexpr std::size_t kShortest = 7;  // a,0,0,0
    std::size_t count = 0;
    while (!text.empty()) {
      const std::size_t line = std::min(text.find('\n'), text.size());
      count += line >= kShortest ? 1 : 0;
      text.remove_prefix(std::min(line + 1, text.size()));
    }
    return count;
  }

  // Interns the rest of the line as a tag, and returns its index.
  std::uint16_t read_tag() {
    const std::string_view word = more_ ? fields_ : std::string_view();
    more_ = false;
    if (word.empty()) return 0;
    const auto [found, fresh] = base::emplace(words_, word, trace_.words.size());
    if (fresh) {
      if (trace_.words.size() > std::numeric_limits<std::uint16_t>::max()) refuse("there are more than 65,535 different tags");
      base::take_text(word.size());
      base::append(trace_.words, std::string(word));
    }
    return static_cast<std::uint16_t>(found->second);
  }

  TraceEvent read_event() {
    const std::string_view operation = next_field();
    if (operation != "a" && operation != "f") refuse("the first field is a (allocate) or f (free)");
    TraceEvent event{};
    event.operation = operation == "a" ? allocate : free;
    event.serial = next_number("the id");
    event.bytes = next_number("the bytes");
    event.stream_id = next_number("the stream");
    if (event.bytes > kMaxBytes) refuse("no address space holds that many bytes");
    return event;
  }

  std::string_view next_field() {
    const std::size_t comma = fields_.find(',');
    const std::string_view field = fields_.substr(0, comma);
    more_ = comma != std::string_view::npos;
    fields_.remove_prefix(more_ ? comma + 1 : fields_.size());
    return field;
  }

  std::uint64_t next_number(std::string_view what) {
    if (!more_) refuse(text::join(what, " is missing"));
    const std::string_view field = next_field();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
    if (error != std::errc() || end != field.data() + field.size()) refuse(text::join(what, " is not a whole number of 64 bits"));
    return number;
  }

  void check_pairing(const TraceEvent& event) {
    if (event.operation == allocate) {
      if (!base::emplace(live_, event.serial).second) refuse("a block of that id is already live");
      return;
    }
    const auto found = live_.find(event.serial);
    if (found == live_.end()) refuse("no block of that id is live");
    base::erase(live_, found);
  }

  [[noreturn]] void refuse(std::string why) const {
    throw FormatError(ErrorCode::format_error,
                      {text::join("reading line ", number_, " of ", text::printable(name_), ", ", text::quoted(line_.substr(0, 80))),
                       std::move(why), "a line is op,id,bytes,stream, such as a,17,4096,0"},
                      {{"line", number_}});
  }

  std::string_view rest_;
  std::string_view name_;
  std::string_view line_;
  std::string_view fields_;  // the unread rest of the line
  bool more_ = true;         // whether a field follows the one read last
  std::uint64_t number_ = 0;
  bool tagged_ = false;  // by the header
  std::unordered_set<std::uint64_t> live_;
  std::unordered_map<std::string_view, std::size_t> words_;  // views of the input
  Trace trace_;
};

}  // namespace

Trace read_text_trace(std::string_view text, std::string_view name) { return TextReader(text, name).read(); }

}  // namespace berth::internal::observe
