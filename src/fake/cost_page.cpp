// A page about what a program costs: SVG and tables in one HTML file, which needs nothing else.
#include <algorithm>
#include <cstdio>

#include "umbra/core/error.h"
#include "umbra/fake/cost.h"

namespace umbra {

namespace {

constexpr double kWidth = 960, kHeight = 320, kLeft = 80, kTop = 20;
constexpr size_t kColumns = 2000;  // more points than that are thinned out, each column keeping its highest

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string amount(double value, double base, const char* const* units, size_t count) {
  size_t unit = 0;
  for (; value >= base && unit + 1 < count; ++unit) value /= base;
  return number(value) + " " + units[unit];
}

std::string bytes_text(int64_t bytes) {
  static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  return amount(static_cast<double>(bytes), 1000, units, std::size(units));
}

std::string flops_text(int64_t flops) {
  static constexpr const char* units[] = {"", "k", "M", "G", "T", "P", "E"};
  return amount(static_cast<double>(flops), 1000, units, std::size(units)) + "FLOP";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

struct Column {
  int64_t bytes = 0;
  size_t point = 0;
};

std::vector<Column> columns(const CostReport& report) {
  size_t points = report.timeline.size(), count = std::min(points, kColumns);
  std::vector<Column> out(count);
  for (size_t i = 0; i < points; ++i) {
    Column& column = out[i * count / points];
    if (report.timeline[i].bytes >= column.bytes) column = {report.timeline[i].bytes, i};
  }
  return out;
}

std::string what_ran(const CostReport& report, size_t point) {
  int32_t index = report.timeline[point].operation;
  if (index < 0) return "";
  const CostOperation& o = report.operations[static_cast<size_t>(index)];
  const std::string& scope = report.scopes[static_cast<size_t>(o.scope)];
  return detail::concat(report.phases[static_cast<size_t>(o.phase)], ": ", o.name, scope.empty() ? "" : " in ", scope);
}

std::string plot(const CostReport& report) {
  std::vector<Column> shown = columns(report);
  double peak = std::max<double>(1, static_cast<double>(report.peak));
  auto x = [&](size_t i) { return kLeft + kWidth * static_cast<double>(i) / std::max<double>(1, shown.size() - 1.0); };
  auto y = [&](int64_t bytes) { return kTop + kHeight * (1 - static_cast<double>(bytes) / peak); };
  std::string path = detail::concat("M", number(kLeft), ",", number(kTop + kHeight)), hover;
  for (size_t i = 0; i < shown.size(); ++i) {
    path += detail::concat(" L", number(x(i)), ",", number(y(shown[i].bytes)));
    hover += detail::concat("<rect x=\"", number(x(i)), "\" y=\"", number(kTop), "\" width=\"",
                            number(kWidth / static_cast<double>(shown.size())), "\" height=\"", number(kHeight),
                            "\" class=\"hover\"><title>", bytes_text(shown[i].bytes), "\n",
                            escaped(what_ran(report, shown[i].point)), "</title></rect>\n");
  }
  path += detail::concat(" L", number(kLeft + kWidth), ",", number(kTop + kHeight), " Z");
  std::string axis;
  for (int i = 0; i <= 4; ++i) {
    auto bytes = static_cast<int64_t>(peak * i / 4);
    axis +=
        detail::concat("<line x1=\"", number(kLeft), "\" x2=\"", number(kLeft + kWidth), "\" y1=\"", number(y(bytes)),
                       "\" y2=\"", number(y(bytes)), "\" class=\"grid\"/><text x=\"", number(kLeft - 6), "\" y=\"",
                       number(y(bytes) + 4), "\" text-anchor=\"end\">", bytes_text(bytes), "</text>\n");
  }
  return detail::concat("<svg viewBox=\"0 0 ", number(kLeft + kWidth + 20), " ", number(kTop + kHeight + 30),
                        "\" role=\"img\" aria-label=\"memory in use over time\">\n", axis, "<path d=\"", path,
                        "\" class=\"memory\"/>\n", hover, "<text x=\"", number(kLeft), "\" y=\"",
                        number(kTop + kHeight + 20), "\">", report.operations.size(),
                        " operators, in the order in which they ran</text></svg>\n");
}

std::string row(const std::string& a, const std::string& b) {
  return detail::concat("<tr><td>", escaped(a), "</td><td>", escaped(b), "</td></tr>\n");
}

std::string table(const std::string& title, const std::map<std::string, int64_t>& values) {
  std::vector<std::pair<std::string, int64_t>> sorted(values.begin(), values.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out = "<h2>" + title + "</h2><table>\n";
  for (const auto& [name, value] : sorted) out += row(name.empty() ? "(all)" : name, flops_text(value));
  return out + "</table>\n";
}

constexpr const char* kStyle =
    "body{font:14px system-ui,sans-serif;margin:2em;max-width:1100px;color:#222;background:#fff}"
    "svg{width:100%}svg text{font-size:11px;fill:#555}.memory{fill:#4c78a8;fill-opacity:.55;stroke:#4c78a8}"
    ".grid{stroke:#ddd}.hover{fill:transparent}.hover:hover{fill:#f5851844}"
    "table{border-collapse:collapse}td{border-bottom:1px solid #eee;padding:.2em 1.5em .2em 0}"
    "td:last-child{text-align:right;font-variant-numeric:tabular-nums}";

}  // namespace

std::string cost_page(const CostReport& report, const std::string& title,
                      const std::vector<std::pair<std::string, std::string>>& summary) {
  std::string out =
      detail::concat("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>", escaped(title),
                     "</title><style>", kStyle, "</style></head><body><h1>", escaped(title), "</h1>\n<table>\n");
  for (const auto& [name, value] : summary) out += row(name, value);
  out += row("Peak memory", bytes_text(report.peak));
  if (!report.timeline.empty()) out += row("At the peak", what_ran(report, report.peak_point));
  out += row("Operations", flops_text(report.flops())) + "</table>\n<h2>Memory in use</h2>\n" + plot(report);
  out += table("Operations by module", report.flops_by_scope());
  out += table("Operations by operator", report.flops_by_operator());
  return out + "</body></html>\n";
}

}  // namespace umbra
