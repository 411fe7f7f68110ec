-- Pending and claimed tickets of a shard. ARGV: the prefix of workflow keys.
-- Returns each lane with pending tickets, their count and the age of the oldest, and the queue of each claimed ticket.
-- The cost does not grow with the number of pending tickets.

local prefix = ARGV[1]
local clock = read_clock()

local lanes = {}
for _, field in ipairs(redis.call('HKEYS', SHARD)) do
  local lane = string.match(field, '^made:(.+)$')
  if lane then
    local first, last = '[' .. lane .. '|', '[' .. lane .. '|~'
    local oldest = redis.call('ZRANGEBYLEX', PENDING, first, last, 'LIMIT', 0, 1)[1]
    if oldest then
      local offered = tonumber(string.match(string.sub(oldest, #lane + 2), '^%d+|(%d+)|')) / 1000
      lanes[#lanes + 1] = {lane, redis.call('ZLEXCOUNT', PENDING, first, last), seconds(math.max(0, clock - offered))}
    end
  end
end

local claimed = {}
for _, id in ipairs(redis.call('HKEYS', OWNERS)) do
  local workflow = string.match(id, '^[^.]+')
  local text = redis.call('HGET', prefix .. workflow, 't:' .. id)
  if text then claimed[#claimed + 1] = cjson.decode(text).queue end
end

return {lanes, claimed}
