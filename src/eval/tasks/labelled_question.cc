#include "eval/tasks/labelled_question.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "eval/tasks/data_lines.h"
#include "eval/tasks/python_text.h"

namespace sluice::eval {
namespace {

std::vector<std::string> texts(const JsonObject& object, const char* key) {
  const Json* const list = object.find(key);
  if (list == nullptr || !list->is_array()) object.fail(key, "a list of texts");
  std::vector<std::string> out;
  for (const Json& value : *list) {
    if (!value.is_string()) object.fail(key, "a list of texts");
    out.push_back(value.get<std::string>());
  }
  return out;
}

}  // namespace

std::size_t answer_of(const std::vector<std::string>& labels, const std::string& label,
                      const std::string& place) {
  if (std::count(labels.begin(), labels.end(), label) != 1)
    throw Error(ErrorKind::kInvalid, "the answer is none of the choices")
        .in(place)
        .expected(fmt::format("one of {}", fmt::join(labels, ", ")))
        .found("\"" + label.substr(0, 40) + "\"");
  return static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

LabelledQuestion labelled_question(const JsonObject& line) {
  LabelledQuestion question;
  std::vector<std::string> labels;
  const Json* const nested = line.find("question");
  if (nested != nullptr && nested->is_object()) {
    const JsonObject inner = line.object("question");
    question.stem = inner.string("stem");
    const Json* const choices = inner.find("choices");
    if (choices == nullptr || !choices->is_array()) inner.fail("choices", "a list of {label, text}");
    for (const Json& choice : *choices) {
      const JsonObject one(choice, line.name() + ": question.choices");
      question.choices.push_back(one.string("text"));
      labels.push_back(one.string("label"));
    }
  } else {
    question.stem = line.string(nested != nullptr ? "question" : "question_stem");
    const JsonObject choices = line.object("choices");
    question.choices = texts(choices, "text");
    labels = texts(choices, "label");
  }
  check_text(question.stem, line.name(), "the question");
  if (question.choices.size() < 2 || labels.size() != question.choices.size())
    line.fail("choices", "at least two, with as many labels");
  question.answer = answer_of(labels, std::string(strip(line.string("answerKey"))), line.name());
  return question;
}

}  // namespace sluice::eval
