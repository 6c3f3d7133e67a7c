// Passes any bytes as one line to every function of the lab: an answer or an error, never a crash, always one
// line of JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lab/ask/lab.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  for (const sluice::lab::Function* function : sluice::lab::functions()) {
    const sluice::lab::Answer answer = sluice::lab::answer_line(*function, line, 1);
    const sluice::Json json = sluice::parse_json(answer.text, "answer");
    if (json.contains("error") == answer.good || answer.text.find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
