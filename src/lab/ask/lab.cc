#include "lab/ask/lab.h"

#include <istream>
#include <ostream>

#include "base/error.h"
#include "base/unknown_name.h"
#include "lab/ask/functions.h"

namespace sluice::lab {
namespace {

const Function* const kFunctions[] = {
    &kSchedule,        &kRank,
    &kRankProfile,     &kPlan,
    &kDispatch,        &kPools,
    &kEvict,           &kSmoeRoute,
    &kScoreWindow,     &kBalance,
    &kPrefetchPartial, &kAssign,
    &kResidual,        &kPrefetchResidual,
    &kWorkloadCache,   &kQuantise,
    &kSliceCache,      &kConstraint,
    &kCachePrior,      &kCumsum,
    &kWarmup,
};

// Reads up to the end of the line, which is dropped. Keeps at most `limit` + 1 bytes of a longer line and
// drops the rest. False at the end of the stream.
bool read_line(std::streambuf& in, Bytes limit, std::string& line) {
  using Traits = std::streambuf::traits_type;
  line.clear();
  Traits::int_type next = in.sbumpc();
  if (Traits::eq_int_type(next, Traits::eof())) return false;
  for (; !Traits::eq_int_type(next, Traits::eof()); next = in.sbumpc()) {
    const char c = Traits::to_char_type(next);
    if (c == '\n') break;
    if (line.size() <= limit) line.push_back(c);
  }
  return true;
}

}  // namespace

std::span<const Function* const> functions() { return kFunctions; }

const Function& find_function(std::string_view name) {
  std::vector<std::string> known = {"list"};
  for (const Function* function : kFunctions) {
    if (function->name == name) return *function;
    known.emplace_back(function->name);
  }
  throw unknown_name("lab", name, known, "the lab has no such function",
                     "ask `sluice lab list` what each takes and answers");
}

Answer answer_line(const Function& function, std::string_view line, std::uint64_t number) {
  const std::string name = "line " + std::to_string(number);
  try {
    if (line.size() <= JsonLimits().max_bytes && line.find_first_not_of(" \t\r") == std::string_view::npos)
      throw Error(ErrorKind::kInvalid, "the line is empty")
          .in(name)
          .expected("a JSON object")
          .fix("remove it");
    const Json value = parse_json(line, name);
    const JsonObject object(value, name);
    for (const Field& field : function.in) {
      if (!value.contains(field.name)) object.fail(field.name, field.text);
    }
    return {.text = function.answer(object).dump(), .good = true};
  } catch (Error& error) {
    if (!error.where().starts_with(name)) error.in(name + ": " + error.where());  // found behind the fields
    const Json bad = {{"error", error.what()}};
    return {.text = bad.dump(-1, ' ', false, Json::error_handler_t::replace), .good = false};
  }
}

bool answer_all(const Function& function, std::istream& in, const std::string& in_name, std::ostream& out,
                const std::function<bool()>& stop) {
  bool good = true;
  std::string line;
  for (std::uint64_t number = 1; !stop(); ++number) {
    try {
      if (!read_line(*in.rdbuf(), JsonLimits().max_bytes, line)) break;
    } catch (const std::ios_base::failure&) {
      throw Error(ErrorKind::kIo, "read failed").in(in_name).fix("check the file and its disk (kernel log)");
    }
    const Answer answer = answer_line(function, line, number);
    good = good && answer.good;
    out << answer.text << std::endl;  // flushed: another process may be waiting for it
    if (!out)
      throw Error(ErrorKind::kIo, "write failed")
          .in("standard output")
          .fix("free some space at the target, or keep the reading program running");
  }
  return good;
}

}  // namespace sluice::lab
