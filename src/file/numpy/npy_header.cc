// SPDX-License-Identifier: Apache-2.0
#include "file/numpy/npy_header.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "file/errors.h"
#include "file/numpy/npy_dtypes.h"

namespace berth::internal::file {

namespace {

std::optional<std::uint64_t> digits(std::string_view text) noexcept {
  std::optional<std::uint64_t> value;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = try_multiply<std::uint64_t>(value.value_or(0), 10);
    if (value) value = try_add<std::uint64_t>(*value, static_cast<std::uint64_t>(c - '0'));
    if (!value) return std::nullopt;
  }
  return value;
}

// The contents of the dictionary.
struct Dictionary {
  std::string_view descr;
  bool fortran_order = false;
  Shape shape;
};

class DictionaryParser {
 public:
  // The text begins at byte `offset` of the file.
  DictionaryParser(std::string_view text, std::uint64_t offset, const NpyPosition& position)
      : text_(text), offset_(offset), position_(position) {}

  Dictionary run() {
    take('{');
    while (!taken('}')) {
      const std::string_view key = quoted("a key");
      take(':');
      read_value(key);
      if (!taken(',')) {
        take('}');
        break;
      }
    }
    if (!seen_[0] || !seen_[1] || !seen_[2])
      refuse("member_missing", text::join("there is no ", !seen_[0] ? std::string_view("descr") : !seen_[1] ? "fortran_order" : "shape"));
    skip_blanks();
    if (at_ != text_.size()) refuse("header_padding", "there are bytes after the dictionary");
    return std::move(found_);
  }

 private:
  [[noreturn]] void refuse(std::string_view rule, std::string why, ErrorCode code = ErrorCode::format_error) const {
    throw_fault(position_.path, {.rule = rule,
                                 .why = std::move(why),
                                 .code = code,
                                 .offset = offset_ + at_,
                                 .name = position_.name.empty() ? std::nullopt : std::optional(position_.name)});
  }

  void skip_blanks() noexcept { at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size()); }
  bool taken(char wanted) noexcept {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void take(char wanted) {
    if (!taken(wanted)) refuse("dictionary", text::join("expected ", wanted));
  }

  // A string in quotes of either kind. None of the three values may contain an escape.
  std::string_view quoted(std::string_view what) {
    const bool is_double = taken('"');
    if (!is_double && !taken('\'')) refuse("member_type", text::join(what, " must be a string"));
    const std::size_t end = text_.find_first_of(is_double ? "\"\\\n" : "'\\\n", at_);
    if (end == std::string_view::npos || text_[end] != (is_double ? '"' : '\''))
      refuse("dictionary", text::join(what, " is not terminated, or has an escape"));
    const std::string_view inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    return inside;
  }

  void read_value(std::string_view key) {
    constexpr std::string_view kKeys[] = {"descr", "fortran_order", "shape"};
    const auto* const which = std::find(std::begin(kKeys), std::end(kKeys), key);
    if (which == std::end(kKeys)) refuse("member_unknown", text::join("the header of an .npy file has no key ", text::quoted(key)));
    if (std::exchange(seen_[which - kKeys], true)) refuse("duplicate_key", text::join(key, " appears twice"));
    if (which == kKeys)
      read_descr();
    else if (which == kKeys + 1)
      found_.fortran_order = read_flag();
    else
      read_shape();
  }

  void read_descr() {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[')
      refuse("structured", "arrays with fields are not read: save each field by itself", ErrorCode::unsupported_dtype);
    found_.descr = quoted("descr");
  }

  bool read_flag() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    refuse("member_type", "fortran_order must be True or False");
  }

  void read_shape() {
    if (!taken('(')) refuse("member_type", "shape must be numbers in parentheses");
    std::int64_t dims[kMaxRank];
    std::size_t rank = 0;
    bool comma = true;
    while (!taken(')')) {
      if (!comma) refuse("shape", "expected a comma between two dimensions");
      if (rank == kMaxRank) refuse("rank", text::join("it has more than ", kMaxRank, " dimensions"), ErrorCode::limit_exceeded);
      dims[rank++] = dimension();
      comma = taken(',');
    }
    // (3) is a number in parentheses, not a tuple.
    if (rank == 1 && !comma) refuse("member_type", "shape must be a tuple: (3,) and not (3)");
    found_.shape = Shape(std::span<const std::int64_t>(dims, rank));
  }

  std::int64_t dimension() {
    skip_blanks();
    const std::size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    // In Python a number of several digits does not begin with 0.
    if (end - at_ > 1 && text_[at_] == '0') refuse("shape", "a dimension begins with 0");
    const std::optional<std::uint64_t> value = digits(text_.substr(at_, end - at_));
    const std::optional<std::int64_t> dim = value ? try_narrow<std::int64_t>(*value) : std::nullopt;
    if (!dim) refuse("shape", "a dimension must be a whole number that is not negative, of at most 63 bits");
    at_ = end;
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 wrote them
    return *dim;
  }

  std::string_view text_;
  std::uint64_t offset_;
  const NpyPosition& position_;
  std::size_t at_ = 0;
  bool seen_[3] = {};
  Dictionary found_;
};

class NpyParser {
 public:
  NpyParser(std::string_view front, const NpyPosition& position) : front_(front), position_(position) {}

  TensorEntry run() {
    const std::size_t start = read_start();
    const Dictionary said = DictionaryParser(front_.substr(start, header_bytes_), position_.offset + start, position_).run();
    TensorEntry entry;
    entry.name = position_.name;
    entry.format_dtype = said.descr;
    entry.shape = said.shape;
    // With at most one axis, both orders are the same.
    entry.fortran_order = said.fortran_order && said.shape.rank() > 1;
    const std::uint64_t element = read_dtype(said.descr, entry);
    read_position(element, position_.bytes - start - header_bytes_, entry);
    entry.file_offset = position_.offset + start + header_bytes_;
    return entry;
  }

 private:
  [[noreturn]] void refuse(Fault fault) const {
    if (!position_.name.empty()) fault.name = position_.name;
    throw_fault(position_.path, std::move(fault));
  }

  std::uint64_t number(std::size_t at, std::size_t bytes) const noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(front_[at + i]);
    return value;
  }

  // Reads magic, version and length; returns the position of the dictionary.
  std::size_t read_start() {
    if (!front_.starts_with(kNpyMagic)) {
      const bool is_short = kNpyMagic.starts_with(front_);
      refuse({.rule = is_short ? std::string_view("too_small") : std::string_view("magic"),
              .why = is_short ? "the file ends within the magic bytes of an .npy file"
                              : "it does not begin with the magic bytes of an .npy file",
              .offset = position_.offset});
    }
    if (front_.size() < kNpyStartBytes)
      refuse({.rule = "too_small", .why = "the file ends before the header begins", .offset = position_.offset});
    const auto major = static_cast<unsigned char>(front_[6]);
    const auto minor = static_cast<unsigned char>(front_[7]);
    if (major < 1 || major > 3 || minor != 0) {
      refuse({.rule = "version",
              .why = text::join("version ", static_cast<unsigned>(major), '.', static_cast<unsigned>(minor), " of the format is not known"),
              .help = "save it again with numpy.save",
              .code = ErrorCode::version_mismatch,
              .offset = position_.offset + 6});
    }
    const std::size_t length_bytes = major == 1 ? 2 : 4;
    header_bytes_ = number(8, length_bytes);
    const std::size_t start = 8 + length_bytes;
    if (header_bytes_ > kMostNpyHeaderBytes) {
      refuse({.rule = "header_limit",
              .why = text::join("the header would be ", header_bytes_, " bytes long, and at most ", kMostNpyHeaderBytes, " are read"),
              .code = ErrorCode::limit_exceeded,
              .offset = position_.offset + 8});
    }
    if (!fits(start, header_bytes_, front_.size())) {
      refuse({.rule = "header_length",
              .why = text::join("the header would be ", header_bytes_, " bytes long, and the file ends before that"),
              .code = ErrorCode::file_truncated,
              .offset = position_.offset + 8,
              .facts = {{"have", position_.bytes}, {"need", start + header_bytes_}}});
    }
    return start;
  }

  // Returns the size of an element.
  std::uint64_t read_dtype(std::string_view descr, TensorEntry& entry) const {
    const auto found = std::ranges::find(kNpyDTypes, descr, &NpyDType::descr);
    if (found != kNpyDTypes.end()) {
      entry.dtype = found->dtype;
      return size_bytes(found->dtype);
    }
    const std::string_view kind = descr.substr(std::min<std::size_t>(1, descr.size()));
    if (kind.starts_with('O') || descr.starts_with('O')) {
      refuse({.rule = "pickle",
              .why = "it is an array of Python objects, which can run arbitrary code when it is read",
              .help = "save arrays of numbers",
              .code = ErrorCode::unsupported_dtype});
    }
    // Opaque bytes: bf16 and f8 are stored like this.
    const std::optional<std::uint64_t> raw = kind.starts_with('V') && descr[0] == '|' ? digits(kind.substr(1)) : std::nullopt;
    if (raw && *raw > 0) return *raw;
    refuse({.rule = "dtype",
            .why = text::join("the dtype ", text::quoted(descr), descr.starts_with('>') ? " is big-endian" : " is not supported"),
            .help = "save it as one of the plain, little-endian dtypes",
            .code = ErrorCode::unsupported_dtype});
  }

  void read_position(std::uint64_t element, std::uint64_t have, TensorEntry& entry) const {
    std::optional<std::uint64_t> need = element;
    bool is_empty = false;
    for (const std::int64_t dim : entry.shape) {
      is_empty = is_empty || dim == 0;
      if (need && dim != 0) need = try_multiply(*need, static_cast<std::uint64_t>(dim));
    }
    // As in NumPy: the strides of an array without elements must be numbers too.
    if (is_empty && (!need || *need > kMaxBytes))
      refuse({.rule = "shape", .why = text::join(entry.shape.to_string(), " has no elements, and strides that 63 bits cannot count")});
    if (is_empty) need = 0;
    if (!need || *need > have) {
      refuse({.rule = "file_truncated",
              .why = text::join(entry.shape.to_string(), " of ", text::printable(entry.format_dtype), " needs more than the ", have,
                                " bytes after the header"),
              .help = "get the file again: it was truncated, or its header is of another file",
              .code = ErrorCode::file_truncated,
              .facts = {{"have", have}, {"need", need.value_or(UINT64_MAX)}}});
    }
    if (*need < have) {
      refuse({.rule = "trailing_bytes",
              .why = text::join(have - *need, " bytes after the last element belong to none"),
              .offset = position_.offset + (position_.bytes - have) + *need});
    }
    entry.size_bytes = *need;
  }

  std::string_view front_;
  const NpyPosition& position_;
  std::uint64_t header_bytes_ = 0;
};

}  // namespace

TensorEntry parse_npy(std::string_view front, const NpyPosition& position) { return NpyParser(front, position).run(); }

}  // namespace berth::internal::file
