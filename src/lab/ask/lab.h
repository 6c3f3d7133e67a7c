// `sluice lab NAME`: what would a policy decide? One JSON object per line in, one per line out; the engine's
// own classes give the answers. `sluice lab list` names the functions and their fields.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include "base/json/json.h"

namespace sluice::lab {

struct Field {
  std::string_view name;
  std::string_view text;  // type, unit, meaning
};

// One function of the lab: a line of the table in lab.cc, and a source of its own.
struct Function {
  std::string_view name;
  std::string_view section;                // section of the specification
  std::span<const Field> in;               // all required; further fields are ignored
  std::span<const Field> in_by_mode = {};  // required in the modes that their text names
  std::span<const Field> out;
  // The answer to one line that has all fields of `in`. Error(kInvalid) naming the field if one is bad.
  Json (*answer)(const JsonObject& line);
};

std::span<const Function* const> functions();
const Function& find_function(std::string_view name);  // Error(kUsage) that lists the known names

struct Answer {
  std::string text;  // one line of JSON, without its end; {"error": "…"} for a bad line
  bool good = true;
};
// `number` (1-based) appears in errors.
Answer answer_line(const Function& function, std::string_view line, std::uint64_t number);

// Answers every line of `in` on `out`, in order, each as soon as it is read. A line beyond the limit of
// parse_json is a bad line and takes no more memory than the limit. False if any line was bad. Stops early
// when `stop` returns true. Error(kIo) if `in` cannot be read or `out` cannot be written; `in_name` is the
// file that errors name.
bool answer_all(const Function& function, std::istream& in, const std::string& in_name, std::ostream& out,
                const std::function<bool()>& stop);

}  // namespace sluice::lab
