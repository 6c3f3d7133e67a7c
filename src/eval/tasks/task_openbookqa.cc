// OpenBookQA: the unchanged stem of the question, and unchanged answers.
#include <fmt/format.h>

#include <map>

#include "eval/tasks/choice_tasks.h"
#include "eval/tasks/data_lines.h"
#include "eval/tasks/labelled_question.h"
#include "eval/tasks/python_text.h"

namespace sluice::eval {
namespace {

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

// "(A) … (B) …": the texts, and their labels.
void split_choices(std::string_view text, std::vector<std::string>& choices, std::vector<std::string>& labels,
                   const std::string& place) {
  if (!text.starts_with("(A) "))
    throw Error(ErrorKind::kInvalid, "the choices are not marked")
        .in(place)
        .expected("(A) … (B) … (C) … (D) …")
        .found("\"" + std::string(text.substr(0, 40)) + "\"");
  text.remove_prefix(4);
  for (char label = 'A';; ++label) {
    const std::size_t end =
        label == 'Z' ? std::string_view::npos : text.find(fmt::format(" ({}) ", char(label + 1)));
    choices.emplace_back(text.substr(0, end));
    labels.emplace_back(1, label);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 5);
  }
}

// Columns by their names: "ID", "Question Stem", "Choices", "Complete Question", "Answer Key".
std::vector<ChoiceItem> read_table(std::string_view text, const std::string& file) {
  std::vector<ChoiceItem> items;
  std::map<std::string, std::size_t> columns;
  each_line(text, file, [&](std::string_view line, const std::string& place) {
    const std::vector<std::string_view> fields = fields_of(line);
    if (columns.empty()) {
      for (std::size_t i = 0; i < fields.size(); ++i) columns[std::string(fields[i])] = i;
      for (const char* name : {"Question Stem", "Choices", "Answer Key"})
        if (!columns.contains(name))
          throw Error(ErrorKind::kInvalid, "a column is missing")
              .in(place)
              .expected(name)
              .fix("give AI2's .tsv with its first line, or JSON lines");
      return;
    }
    const auto field = [&](const char* name) {
      const std::size_t column = columns.at(name);
      if (column >= fields.size())
        throw Error(ErrorKind::kInvalid, "the line has too few fields")
            .in(place)
            .expected(fmt::format("\"{}\" as field {}", name, column + 1))
            .found(fmt::format("{} fields", fields.size()));
      return fields[column];
    };
    ChoiceItem item;
    item.context = field("Question Stem");
    check_text(item.context, place, "Question Stem");
    std::vector<std::string> labels;
    split_choices(field("Choices"), item.choices, labels, place);
    if (item.choices.size() < 2)
      throw Error(ErrorKind::kInvalid, "there is only one choice").in(place).expected("at least two");
    item.answer = answer_of(labels, std::string(strip(field("Answer Key"))), place);
    items.push_back(std::move(item));
  });
  return items;
}

}  // namespace

std::vector<ChoiceItem> read_openbookqa(std::string_view text, const std::string& file) {
  std::vector<ChoiceItem> items;
  if (first_character(text) == '{') {
    each_json_line(text, file, [&](const JsonObject& line) {
      LabelledQuestion question = labelled_question(line);
      items.push_back({std::move(question.stem), std::move(question.choices), question.answer});
    });
  } else {
    items = read_table(text, file);
  }
  check_any(items.size(), file);
  return items;
}

}  // namespace sluice::eval
