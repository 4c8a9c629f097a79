-- Before a script of a quorum. The last KEYS marker, the last ARGV how long a server that has lost its memory has no vote, in ms.
-- Returns {0, for how long it has been there, in ms, the marker} if it has none; else what follows has its turn, and
-- number, higher than all that were made known here, of whatever lease; sure is false if there may have been higher ones.
local number, sure
do
  local time = redis.call('TIME')
  local micros = time[1] * 1000000 + time[2]
  local now = math.floor(micros / 1000)
  local longest = tonumber(ARGV[#ARGV])
  local info = redis.pcall('INFO', 'server')
  local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or '' -- unknown to who may not ask
  local marker = redis.call('MGET', KEYS[#KEYS])[1] -- what is no string is as nothing
  local known, since, last, forgot = string.match(marker or '', '^(%w*) (%d+) (%d+)(%??)$')
  since, last = tonumber(since), tonumber(last) or 0
  if last > 9007199254740990 then last = 0 end -- nobody can have been granted that, and it would be the last for ever
  local another = known ~= run and known ~= '' and run ~= ''
  if not known or another or since > now then -- it is new, empty, restarted, or its clock was set back
    since = now
    marker = string.format('%s %.0f %.0f?', run, since, last)
    redis.call('SET', KEYS[#KEYS], marker)
  elseif known == '' and run ~= '' then -- from now on a restart is recognised
    marker = run .. marker
    redis.call('SET', KEYS[#KEYS], marker)
  end
  if now - since < longest then return {0, now - since, marker} end
  number = math.max(last + 1, micros)
  sure = forgot == '' or now - since >= 2 * longest -- who knows more is not there: now its clock has to do
end
