// ARC, both halves: "Question: {question}\nAnswer:", and the answers as they are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "eval/tasks/choice_tasks.h"
#include "eval/tasks/data_lines.h"
#include "eval/tasks/labelled_question.h"

namespace sluice::eval {
namespace {

std::string prompt_of(std::string_view question) { return fmt::format("Question: {}\nAnswer:", question); }

// An entry of LLM-Adapters' file has the item inside an instruction:
//   "Please choose the correct answer to the question: …\n\nAnswer1: … Answer2: …\n\nAnswer format:
//   answer1/answer2/…"
ChoiceItem read_instruction(const JsonObject& entry) {
  constexpr std::string_view kStart = "Please choose the correct answer to the question: ",
                             kFirst = "\n\nAnswer1: ", kFormat = "\n\nAnswer format: ";
  const std::string instruction = entry.string("instruction");
  std::string_view rest = instruction;
  const std::size_t first = rest.find(kFirst), format = rest.rfind(kFormat);
  if (!rest.starts_with(kStart) || first == std::string_view::npos || format == std::string_view::npos ||
      format < first + kFirst.size() || first < kStart.size())
    entry.fail("instruction",
               "\"Please choose the correct answer to the question: …\", answers, \"Answer format: …\"");
  const std::string_view question = rest.substr(kStart.size(), first - kStart.size());
  check_text(question, entry.name(), "the question");
  rest = rest.substr(first + kFirst.size(), format - first - kFirst.size());
  ChoiceItem item{prompt_of(question), {}, 0};
  std::vector<std::string> labels;
  while (true) {
    const std::string next = fmt::format(" Answer{}: ", labels.size() + 2);
    const std::size_t end = rest.find(next);
    item.choices.emplace_back(rest.substr(0, end));
    labels.push_back(fmt::format("answer{}", labels.size() + 1));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + next.size());
  }
  if (fmt::format("{}", fmt::join(labels, "/")) !=
          std::string_view(instruction).substr(format + kFormat.size()) ||
      labels.size() < 2)
    entry.fail("instruction", "as many answers as \"Answer format: …\" names, at least two");
  item.answer = answer_of(labels, entry.string("answer"), entry.name());
  return item;
}

}  // namespace

std::vector<ChoiceItem> read_arc(std::string_view text, const std::string& file) {
  std::vector<ChoiceItem> items;
  if (first_character(text) == '[') {
    const Json list = parse_json(text, file, {.max_bytes = 256 * kMiB});
    for (const Json& entry : list)
      items.push_back(
          read_instruction(JsonObject(entry, fmt::format("{}, entry {}", file, items.size() + 1))));
  } else {
    each_json_line(text, file, [&](const JsonObject& line) {
      LabelledQuestion question = labelled_question(line);
      items.push_back({prompt_of(question.stem), std::move(question.choices), question.answer});
    });
  }
  check_any(items.size(), file);
  return items;
}

}  // namespace sluice::eval
