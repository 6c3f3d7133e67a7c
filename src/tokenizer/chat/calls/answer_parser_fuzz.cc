// Reads a byte that names a family, a prompt, a NUL, and any text as an answer: in pieces it gives what it
// gives as a whole, in an order that a client understands.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tokenizer/chat/calls/answer_parser.h"

namespace {

using namespace sluice::tokenizer;
using Kind = AnswerEvent::Kind;

void join(std::vector<AnswerEvent>& all, const std::vector<AnswerEvent>& more) {
  for (const AnswerEvent& event : more) {
    const bool has_text = event.kind != Kind::kCallBegin && event.kind != Kind::kCallEnd;
    SLUICE_CHECK(has_text != event.text.empty());
    if (has_text && !all.empty() && all.back().kind == event.kind)
      all.back().text += event.text;
    else
      all.push_back(event);
  }
}

std::vector<AnswerEvent> read(const AnswerFormat& format, std::string_view prompt, std::string_view text,
                              std::size_t piece) {
  AnswerParser parser(format, nullptr,
                      {.prompt = prompt, .begun = {}, .tools = {{"f", sluice::Json::object()}}});
  std::vector<AnswerEvent> all;
  for (std::size_t at = 0; at < text.size(); at += piece) join(all, parser.append(text.substr(at, piece)));
  join(all, parser.finish());
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view prompt = input.substr(0, end);
  const std::string_view text = input.substr(std::min(end + 1, input.size()));
  const CallFamily& family = call_families()[data[0] % call_families().size()];
  AnswerFormat format = answer_format(prompt, family.name, data[0] % 2 == 0);
  const std::vector<AnswerEvent> whole = read(format, prompt, text, text.size() + 1);
  SLUICE_CHECK(read(format, prompt, text, 1) == whole);
  SLUICE_CHECK(read(format, prompt, text, 7) == whole);
  std::size_t calls = 0;
  bool open = false;
  for (const AnswerEvent& event : whole) {
    const bool begins = event.kind == Kind::kCallBegin;
    const bool of_call = event.kind == Kind::kCallArguments || event.kind == Kind::kCallEnd;
    SLUICE_CHECK(open == of_call);
    if (begins) SLUICE_CHECK(event.call == calls++ && !event.name.empty() && !event.id.empty());
    open = begins || event.kind == Kind::kCallArguments;
  }
  SLUICE_CHECK(!open);
  return 0;
}
