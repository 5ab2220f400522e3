# SPDX-License-Identifier: MIT OR Apache-2.0
# What a page of a Rails application does with strings: records become hashes, a page of HTML and JSON; some stay in a cache.
require "json"

CACHE = {}
LOCK = Mutex.new
$turn = 0

def records(turn)
  rows = 20 + turn * 37 % 400
  Array.new(rows) do |i|
    { "id" => i, "name" => "customer #{turn}-#{i}", "mail" => "user#{i}@example.org",
      "note" => "n" * (turn * 13 + i * 7) .modulo(600), "tags" => Array.new(i % 8) { |t| "tag-#{t}-#{turn}" } }
  end
end

def html(rows)
  out = +"<table>"
  rows.each { |r| out << "<tr>" << r.map { |k, v| "<td class='#{k}'>#{v}</td>" }.join << "</tr>" }
  out << "</table>"
end

run(lambda do |_env|
  turn = LOCK.synchronize { $turn += 1 }
  rows = records(turn)
  page = html(rows)
  text = JSON.generate(rows)
  LOCK.synchronize do
    CACHE[turn % 200] = text if turn % 3 == 0
  end
  [200, { "Content-Type" => "text/html" }, [page, "<!-- #{JSON.parse(text).size} -->"]]
end)
