// Visits the lines of a data file one by one, and reports errors in a line.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json/json.h"

namespace sluice::eval {

// Calls `take` with every line that is not blank, without its end ("\n" or "\r\n"), and "FILE, line N".
void each_line(std::string_view text, const std::string& file,
               const std::function<void(std::string_view line, const std::string& place)>& take);
// The same for lines that are JSON objects. Error(kInvalid).
void each_json_line(std::string_view text, const std::string& file,
                    const std::function<void(const JsonObject& line)>& take);

// The first character that is not white space; 0 if there is none.
char first_character(std::string_view text);
// Error(kInvalid) if the file has no item.
void check_any(std::size_t items, const std::string& file);
// Error(kInvalid) naming the place and the field if `value` is empty without the white space at its ends.
void check_text(std::string_view value, const std::string& place, std::string_view field);

}  // namespace sluice::eval
