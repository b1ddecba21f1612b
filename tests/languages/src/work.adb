--  SPDX-License-Identifier: MIT
--  Nested subprograms, exceptions, tasks with rendezvous, controlled strings.
with Ada.Text_IO;
with Ada.Strings.Unbounded; use Ada.Strings.Unbounded;

procedure Work is
   Odd_Number : exception;

   task type Adder is
      entry Add (Value : Long_Integer);
      entry Get (Value : out Long_Integer);
   end Adder;

   task body Adder is
      Total : Long_Integer := 0;
      Done  : Boolean := False;
   begin
      while not Done loop
         select
            accept Add (Value : Long_Integer) do
               Total := Total + Value;
            end Add;
         or
            accept Get (Value : out Long_Integer) do
               Value := Total;
               Done := True;
            end Get;
         end select;
      end loop;
   end Adder;

   function Half (N : Long_Integer) return Long_Integer is
   begin
      if N mod 2 = 1 then
         raise Odd_Number;
      end if;
      return N / 2;
   end Half;

   function Sum_Of (Count : Long_Integer) return Long_Integer is
      Total : Long_Integer := 0;

      procedure Each (N : Long_Integer) is
      begin
         Total := Total + Half (N);
      exception
         when Odd_Number => Total := Total + 1;
      end Each;
   begin
      for N in 1 .. Count loop
         Each (N);
      end loop;
      return Total;
   end Sum_Of;

   Workers : array (1 .. 3) of Adder;
   Sum     : Long_Integer := Sum_Of (4000);
   Part    : Long_Integer;
   Text    : Unbounded_String;
begin
   for N in 1 .. 600 loop
      Workers (N mod 3 + 1).Add (Long_Integer (N));
      Text := Text & Integer'Image (N);
   end loop;
   for W of Workers loop
      W.Get (Part);
      Sum := Sum + Part;
   end loop;
   Ada.Text_IO.Put_Line (Long_Integer'Image (Sum) & Integer'Image (Length (Text)));
end Work;
