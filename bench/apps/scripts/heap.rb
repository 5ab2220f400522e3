# SPDX-License-Identifier: MIT OR Apache-2.0
# Hashes, arrays and strings beyond what fits into Ruby's own slots: their bodies come from malloc.
random = Random.new(4)
table = {}
total = 0
250_000.times do |i|
  key = "key#{random.rand(20_000)}"
  if random.rand < 0.3
    old = table.delete(key)
    total += old.sum(&:length) if old
  else
    (table[key] ||= []) << ("v" * random.rand(200)) + i.to_s
  end
end
words = table.values.flatten.map { |s| s.tr("v", "w").upcase }
groups = words.group_by { |w| w.length % 50 }
text = words.first(30_000).join(" ").gsub(/W(\d)/) { "#{$1}#{$1}" }
puts "heap #{total} #{table.size} #{groups.size} #{text.length}"
