// What a GGUF file holds, for people and for scripts.
#pragma once

#include <string>

namespace sluice::app {

// Prints keys and types, and with `tensors` a line for each tensor; or one JSON object. Error as read_gguf().
void print_gguf(const std::string& path, bool tensors, bool json);

}  // namespace sluice::app
