// HellaSwag: "{activity_label}: {ctx_a} {ctx_b, capitalised}", cleaned as lm-evaluation-harness does; the
// endings, cleaned likewise.
#include "eval/tasks/choice_tasks.h"
#include "eval/tasks/data_lines.h"
#include "eval/tasks/python_text.h"

namespace sluice::eval {
namespace {

// re.sub("\\[.*?\\]", "", text): removes text from a bracket to the next closing one within a line.
std::string without_brackets(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = text.find('['),
                      end = text.find_first_of("]\n", open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || end == std::string_view::npos) break;
    if (text[end] == ']') {
      out.append(text.substr(0, open));
      text.remove_prefix(end + 1);
    } else {  // no bracket of this line is closed
      out.append(text.substr(0, end + 1));
      text.remove_prefix(end + 1);
    }
  }
  return out.append(text);
}

// Removes what WikiHow left in the text.
std::string clean(std::string_view text) {
  return replace(without_brackets(replace(strip(text), " [title]", ". ")), "  ", " ");
}

}  // namespace

std::vector<ChoiceItem> read_hellaswag(std::string_view text, const std::string& file) {
  std::vector<ChoiceItem> items;
  each_json_line(text, file, [&](const JsonObject& line) {
    ChoiceItem item;
    item.context = clean(line.string("activity_label") + ": " + line.string("ctx_a") + " " +
                         capitalize(line.string_or("ctx_b", "")));
    check_text(item.context, line.name(), "activity_label, ctx_a and ctx_b");
    const Json* const endings = line.find("endings");
    if (endings == nullptr || !endings->is_array() || endings->size() < 2)
      line.fail("endings", "a list of at least two texts");
    for (const Json& ending : *endings) {
      if (!ending.is_string()) line.fail("endings", "a list of at least two texts");
      item.choices.push_back(clean(ending.get_ref<const std::string&>()));
    }
    const auto last = static_cast<std::int64_t>(item.choices.size() - 1);
    const Json* const label = line.find("label");
    if (label != nullptr && label->is_string()) {  // as the hub publishes it
      const std::string& digit = label->get_ref<const std::string&>();
      if (digit.size() != 1 || digit[0] < '0' || digit[0] - '0' > last)
        line.fail("label", "the number of an ending");
      item.answer = static_cast<std::size_t>(digit[0] - '0');
    } else {
      item.answer = static_cast<std::size_t>(line.integer("label", 0, last));
    }
    items.push_back(std::move(item));
  });
  check_any(items.size(), file);
  return items;
}

}  // namespace sluice::eval
