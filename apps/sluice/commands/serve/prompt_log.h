// Writes prompts to a file, if the user of a server asks for that.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace sluice::app {

// A file of each request, DIRECTORY/ID.txt, for its owner alone; the directory is made if it is not there.
// Warns that prompts are kept. Error(kIo), (kNotFound) if the directory cannot be written. The result is
// thread-safe; a file that cannot be written is a warning, once.
std::function<void(std::string_view id, std::string_view what, std::string_view text)> prompt_log(
    const std::string& directory);

}  // namespace sluice::app
