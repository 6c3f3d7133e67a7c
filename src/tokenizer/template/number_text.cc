#include "tokenizer/template/number_text.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "tokenizer/template/characters.h"

namespace sluice::tokenizer::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Without underscores, each of which must stand between two digits or letters. Empty if one does not.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || i + 1 == text.size() || !std::isalnum(static_cast<unsigned char>(text[i - 1])) ||
               !std::isalnum(static_cast<unsigned char>(text[i + 1]))) {
      return std::nullopt;
    }
  }
  return digits;
}

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  std::string sign;
  if (text.front() == '-') sign = "-", text.remove_prefix(1);
  const std::size_t e = text.find('e');
  int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::string result = sign + digits.substr(0, 1);
    if (count > 1) result += "." + digits.substr(1);
    result += exponent < 0 ? "e-" : "e+";
    exponent = std::abs(exponent);
    return result + (exponent < 10 ? "0" : "") + std::to_string(exponent);
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (exponent >= count - 1)
    return sign + digits + std::string(static_cast<std::size_t>(exponent - count + 1), '0') + ".0";
  return sign + digits.substr(0, static_cast<std::size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<std::size_t>(exponent) + 1);
}

std::optional<std::int64_t> read_integer(std::string_view text, int base) {
  text = stripped(text);
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) negative = text[0] == '-', text.remove_prefix(1);
  const auto prefix = [&](char lower) {
    return text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == lower;
  };
  if ((base == 16 && prefix('x')) || (base == 8 && prefix('o')) || (base == 2 && prefix('b'))) {
    text.remove_prefix(2);
    if (text.front() == '_') text.remove_prefix(1);
  }
  const auto digits = without_underscores(text);
  if (!digits || digits->empty() || base < 2 || base > 36) return std::nullopt;
  std::string whole = (negative ? "-" : "") + *digits;
  if (digits->front() == '-') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), value, base);
  if (error != std::errc{} || end != whole.data() + whole.size()) return std::nullopt;
  return value;
}

std::optional<double> read_real(std::string_view text) {
  const auto plain = without_underscores(stripped(text));
  if (!plain || plain->empty()) return std::nullopt;
  std::string_view rest = *plain;
  double sign = 1;
  if (rest[0] == '-' || rest[0] == '+') sign = rest[0] == '-' ? -1 : 1, rest.remove_prefix(1);
  std::string lower;
  for (const char c : rest) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
  if (lower == "inf" || lower == "infinity") return sign * HUGE_VAL;
  if (lower == "nan") return std::nan("");
  if (rest.empty() || !(is_digit(rest[0]) || (rest[0] == '.' && rest.size() > 1 && is_digit(rest[1]))))
    return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (end != rest.data() + rest.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return sign * std::strtod(std::string(rest).c_str(), nullptr);
  if (error != std::errc{}) return std::nullopt;
  return sign * value;
}

}  // namespace sluice::tokenizer::jinja
