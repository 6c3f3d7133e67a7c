// Reads any bytes as the data of every task: either items that can be asked, or Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "eval/tasks/choice_tasks.h"
#include "tokenizer/text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice;
  for (const eval::ChoiceTask& task : eval::choice_tasks()) {
    try {
      for (const eval::ChoiceItem& item : task.read({reinterpret_cast<const char*>(data), size}, "data")) {
        SLUICE_CHECK(item.choices.size() >= 2 && item.answer < item.choices.size());
        SLUICE_CHECK(!tokenizer::find_invalid_utf8(item.context));
        for (const std::string& choice : item.choices) SLUICE_CHECK(!tokenizer::find_invalid_utf8(choice));
      }
    } catch (const Error&) {
    }
  }
  return 0;
}
