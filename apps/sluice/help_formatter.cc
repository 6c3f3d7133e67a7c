#include "help_formatter.h"

namespace sluice::app {

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  std::string text = CLI::Formatter::make_option_opts(option);
  const std::string type = option->get_type_name();
  const std::size_t at = type.empty() ? std::string::npos : text.find(type);
  if (at == std::string::npos) return text;
  std::string word = type.substr(0, type.find(':'));  // behind it: what its checks say of themselves
  if (word == "INT" || word == "UINT" || word == "FLOAT") word = "NUMBER";
  return text.replace(at, type.size(), word);
}

}  // namespace sluice::app
